/* emu_threads.cpp - tests that the emulator runs threads as a GPU does. Correct kernels must
 * give the correct result in any order of threads, and faults in kernels must be detected.
 */
#include "tests/emu/unit/emu_test.h"

#include <cmath>

enum { THREADS = 96, BLOCKS = 5 };

/* ------------------------------------------------------------------ indices and barriers */

static __global__ void write_indices(int *out)
{
    int block = (int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    int thread = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    int threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    out[block * threads + thread] += 1 + block * threads + thread;
}

TEST(every_thread_of_every_block_runs_once)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        emu_set_seed(seed);
        const int n = 2 * 3 * 4 * (5 * 6 * 7);
        device_array<int> out(std::vector<int>((size_t)n, 0));
        ESP_LAUNCH(write_indices, dim3(2, 3, 4), dim3(5, 6, 7), 0, nullptr, out.data);
        std::vector<int> got = out.read();
        for (int i = 0; i < n; i++)
            CHECK(got[(size_t)i] == i + 1, "seed %d: [%d] is %d", (int)seed, i, got[(size_t)i]);
    }
}

/* In each round, every thread takes the value of the next thread. This needs a barrier. */
static __global__ void pass_around(int *out, int rounds, bool barrier)
{
    ESP_SHARED(int, room);
    const int n = (int)blockDim.x, i = (int)threadIdx.x;
    int value = i;
    for (int round = 0; round < rounds; round++) {
        room[round % 2 * n + i] = value;
        if (barrier)
            __syncthreads();
        value = room[round % 2 * n + (i + 1) % n];
    }
    out[(int)blockIdx.x * n + i] = value;
}

static int wrong_after_passing(bool barrier)
{
    device_array<int> out(BLOCKS * THREADS);
    ESP_LAUNCH(pass_around, BLOCKS, THREADS, 2 * THREADS * sizeof(int), nullptr, out.data, 10,
               barrier);
    int wrong = 0;
    std::vector<int> got = out.read();
    for (int i = 0; i < BLOCKS * THREADS; i++)
        wrong += got[(size_t)i] != (i % THREADS + 10) % THREADS;
    return wrong;
}

TEST(a_missing_barrier_gives_wrong_results)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        emu_set_seed(seed);
        int with = wrong_after_passing(true), without = wrong_after_passing(false);
        CHECK(with == 0, "seed %d: %d values are wrong with barriers", (int)seed, with);
        CHECK(without > 0, "seed %d: a missing barrier is not detected", (int)seed);
    }
}

static __global__ void count_votes(int *out)
{
    int i = (int)threadIdx.x, count = __syncthreads_count(i % 3 == 0);
    int any = __syncthreads_or(i == 7), none = __syncthreads_or(0);
    int all = __syncthreads_and(1), most = __syncthreads_and(i != 7);
    out[i] = count * 16 + any * 8 + none * 4 + all * 2 + most;
}

TEST(barriers_count_votes)
{
    device_array<int> out(THREADS);
    ESP_LAUNCH(count_votes, 1, THREADS, 0, nullptr, out.data);
    for (int got : out.read())
        CHECK(got == 32 * 16 + 8 + 2, "%d", got);
}

static __global__ void leave_early()
{
    if (threadIdx.x != 40)
        __syncthreads();
}

static __global__ void two_barriers()
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

TEST(barriers_that_not_all_threads_reach_are_detected)
{
    DIES("kernel leave_early, block (0, 0, 0), thread (40, 0, 0): has returned while",
         ESP_LAUNCH(leave_early, 1, THREADS, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("other threads at __syncthreads", ESP_LAUNCH(two_barriers, 1, THREADS, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("__syncthreads was called outside a kernel", __syncthreads());
}

/* ------------------------------------------------------------------ warps */

static __global__ void shuffle_all(int *out, int width)
{
    int i = (int)threadIdx.x, n = (int)blockDim.x;
    out[i] = __shfl_sync(~0u, i, i + 5, width);
    out[n + i] = __shfl_up_sync(~0u, i, 3, width);
    out[2 * n + i] = __shfl_down_sync(~0u, i, 3, width);
    out[3 * n + i] = __shfl_xor_sync(~0u, i, 9, width);
}

TEST(shuffles_follow_the_definition)
{
    for (int width = 1; width <= 32; width *= 2) {
        device_array<int> out(4 * 64);
        ESP_LAUNCH(shuffle_all, 1, 64, 0, nullptr, out.data, width);
        std::vector<int> got = out.read();
        for (int i = 0; i < 64; i++) {
            int first = i / width * width, last = first + width - 1, at = i % width;
            int want[4] = {first + (at + 5) % width, at >= 3 ? i - 3 : i,
                           i + 3 <= last ? i + 3 : i, (i ^ 9) <= last ? i ^ 9 : i};
            for (int kind = 0; kind < 4; kind++)
                CHECK(got[(size_t)(kind * 64 + i)] == want[kind],
                      "width %d, lane %d, kind %d: %d, want %d", width, i, kind,
                      got[(size_t)(kind * 64 + i)], want[kind]);
        }
    }
}

static __global__ void other_types(double *out, unsigned long long *wide, float *narrow)
{
    int i = (int)threadIdx.x;
    out[i] = __shfl_xor_sync(~0u, 0.1 * i, 1);
    wide[i] = __shfl_xor_sync(~0u, (unsigned long long)i << 40, 1);
    narrow[i] = esp_to_float(__shfl_xor_sync(~0u, esp_from_float<esp_bf16>((float)i), 1));
}

TEST(shuffles_carry_every_type)
{
    device_array<double> out(32);
    device_array<unsigned long long> wide(32);
    device_array<float> narrow(32);
    ESP_LAUNCH(other_types, 1, 32, 0, nullptr, out.data, wide.data, narrow.data);
    for (int i = 0; i < 32; i++) {
        size_t at = (size_t)i;
        CHECK(out.read()[at] == 0.1 * (i ^ 1), "lane %d", i);
        CHECK(wide.read()[at] == (unsigned long long)(i ^ 1) << 40, "lane %d", i);
        CHECK(narrow.read()[at] == (float)(i ^ 1), "lane %d", i);
    }
}

static __global__ void votes(unsigned *out)
{
    int i = (int)threadIdx.x;
    unsigned odd = __ballot_sync(~0u, i & 1), same = __match_any_sync(~0u, i / 8);
    int any = __any_sync(~0u, i == 3), all = __all_sync(~0u, i < 31);
    unsigned half = 0;
    if (i < 16) /* only the lower half of the warp calls the warp functions */
        half = __ballot_sync(0xffffu, i < 4) + __reduce_add_sync(0xffffu, (unsigned)i);
    __syncwarp();
    int most = __reduce_max_sync(~0u, i - 40), least = __reduce_min_sync(~0u, i - 40);
    out[i] = odd == 0xaaaaaaaau && same == 0xffu << i / 8 * 8 && any == 1 && all == 0 &&
             half == (i < 16 ? 0xfu + 120 : 0) && most == -9 && least == -40;
}

TEST(votes_and_reductions_of_a_warp_follow_the_definition)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        emu_set_seed(seed);
        device_array<unsigned> out(32);
        ESP_LAUNCH(votes, 1, 32, 0, nullptr, out.data);
        for (unsigned got : out.read())
            CHECK(got == 1, "seed %d", (int)seed);
    }
}

static __global__ void sums(const float *in, float *out, double *block)
{
    ESP_SHARED(double, room);
    size_t at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = esp_warp_sum(in[at]) + 1000.0f * esp_warp_max(in[at]);
    block[at] = esp_block_sum((double)in[at], room);
}

TEST(sums_of_warps_and_blocks_are_right)
{
    std::vector<float> in(BLOCKS * THREADS);
    for (size_t i = 0; i < in.size(); i++)
        in[i] = (float)(i * 7 % 31);
    device_array<float> from(in), out(in.size());
    device_array<double> block(in.size());
    ESP_LAUNCH(sums, BLOCKS, THREADS, THREADS / 32 * sizeof(double), nullptr, from.data,
               out.data, block.data);
    std::vector<float> got = out.read();
    std::vector<double> got_block = block.read();
    for (size_t i = 0; i < in.size(); i++) {
        float sum = 0, most = 0;
        double whole = 0;
        for (size_t lane = i / 32 * 32; lane < i / 32 * 32 + 32; lane++) {
            sum += in[lane];
            most = fmaxf(most, in[lane]);
        }
        for (size_t j = i / THREADS * THREADS; j < i / THREADS * THREADS + THREADS; j++)
            whole += in[j];
        CHECK(got[i] == sum + 1000.0f * most && got_block[i] == whole, "thread %zu", i);
    }
}

static __global__ void lane_away()
{
    if (threadIdx.x != 5)
        __shfl_sync(~0u, 1, 0);
}

static __global__ void lanes_apart()
{
    if (threadIdx.x < 16)
        __shfl_sync(~0u, 1, 0);
    else
        __shfl_sync(~0u, 1, 0);
}

static __global__ void masks_apart()
{
    __ballot_sync(threadIdx.x < 16 ? 0xffffffffu : 0xffff0000u, 1);
}

static __global__ void mask_without_self()
{
    __syncwarp(threadIdx.x == 9 ? 1u : ~0u);
}

static __global__ void lane_at_barrier()
{
    if (threadIdx.x == 2)
        __syncthreads();
    else
        esp_warp_sum(1);
    __syncthreads();
}

static __global__ void whole_warp()
{
    __syncwarp();
}

static __global__ void lonely_product(float *out)
{
    float d[4] = {};
    if (threadIdx.x < 31)
        esp_mma(d, 0, 0, 0, 0, 0, 0, esp_bf16());
    out[threadIdx.x] = d[0];
}

TEST(warps_whose_lanes_do_not_meet_are_detected)
{
    device_array<float> out(32);
    DIES("lane 5 has returned", ESP_LAUNCH(lane_away, 1, 32, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("waits forever in __shfl_sync", ESP_LAUNCH(lanes_apart, 1, 32, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("waits forever in __ballot_sync", ESP_LAUNCH(masks_apart, 1, 32, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("which leaves out its own lane", ESP_LAUNCH(mask_without_self, 1, 32, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("lane 2 waits in __syncthreads", ESP_LAUNCH(lane_at_barrier, 1, 32, 0, nullptr);
         cudaDeviceSynchronize());
    DIES("does not exist", ESP_LAUNCH(whole_warp, 1, 40, 0, nullptr); cudaDeviceSynchronize());
    DIES("lane 31 has returned", ESP_LAUNCH(lonely_product, 1, 32, 0, nullptr, out.data);
         cudaDeviceSynchronize());
}

/* Lane 0 of each warp writes a value, and all lanes of the warp read it. The result is correct
 * only if the lanes synchronise between the write and the reads. */
static __global__ void through_memory(int *out, bool meet)
{
    ESP_SHARED(int, room);
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = 77;
    if (meet)
        __syncwarp();
    out[threadIdx.x] = room[threadIdx.x / 32];
}

TEST(a_missing_syncwarp_gives_wrong_results)
{
    bool seen = false;
    for (uint64_t seed = 0; seed < 8; seed++) {
        emu_set_seed(seed);
        device_array<int> out(64);
        ESP_LAUNCH(through_memory, 1, 64, 8, nullptr, out.data, true);
        for (int got : out.read())
            CHECK(got == 77, "seed %d: %d", (int)seed, got);
        ESP_LAUNCH(through_memory, 1, 64, 8, nullptr, out.data, false);
        for (int got : out.read())
            seen |= got != 77;
    }
    CHECK(seen, "a missing __syncwarp had no effect in any order of lanes");
}

/* ------------------------------------------------------------------ shared memory */

static __global__ void read_unwritten(float *out)
{
    ESP_SHARED(float, room);
    out[blockIdx.x] = room[0];
    room[0] = 1.0f; /* the next block would see this if shared memory were kept */
}

static __global__ void beyond_shared(int at, int write)
{
    ESP_SHARED(char, room);
    if (threadIdx.x == 0 && write)
        room[at] = 1;
    else if (threadIdx.x == 0 && room[at] == 2)
        room[0] = 2;
}

TEST(shared_memory_is_poisoned_and_exact)
{
    device_array<float> out(BLOCKS);
    ESP_LAUNCH(read_unwritten, BLOCKS, 1, 4, nullptr, out.data);
    for (float got : out.read())
        CHECK(std::isnan(got), "%g", got);
    const char *caught = emu_sanitized ? "AddressSanitizer" : "wrote outside shared memory";
    DIES(caught, ESP_LAUNCH(beyond_shared, 1, 32, 100, nullptr, 100, 1);
         cudaDeviceSynchronize());
    DIES(caught, ESP_LAUNCH(beyond_shared, 1, 32, 100, nullptr, -1, 1);
         cudaDeviceSynchronize());
    if (emu_sanitized)
        DIES("beyond_shared", ESP_LAUNCH(beyond_shared, 1, 32, 100, nullptr, 100, 0);
             cudaDeviceSynchronize());
    ESP_LAUNCH(beyond_shared, 1, 32, 100, nullptr, 99, 1);
    OK(cudaDeviceSynchronize());
}

/* ------------------------------------------------------------------ order of blocks */

static __global__ void after_another(int *flags, int *out)
{
    int before = blockIdx.x ? flags[blockIdx.x - 1] : 1;
    out[blockIdx.x] = before;
    flags[blockIdx.x] = 1;
}

TEST(blocks_that_depend_on_their_order_give_wrong_results)
{
    int right = 0;
    for (uint64_t seed = 1; seed < 20; seed++) {
        emu_set_seed(seed);
        device_array<int> flags(std::vector<int>(16, 0)), out(16);
        ESP_LAUNCH(after_another, 16, 1, 0, nullptr, flags.data, out.data);
        bool all = true;
        for (int got : out.read())
            all &= got == 1;
        right += all;
    }
    CHECK(right <= 2, "%d of 19 orders of the blocks are the natural order", right);
}

/* ---------------------------------------------------------------- copies in the background */

enum { NOT_READ = -1 }; /* 0xffffffff: what a copy's destination contains until the copy runs */

/* Each thread begins two copies of 16 bytes. It reads their destinations three times: before it
 * waits, after it has waited for the first copy, and after it has waited for both. */
static __global__ void copy_and_look(const int *from, int *out)
{
    ESP_SHARED(int, room);
    int *mine = room + 8 * threadIdx.x, *seen = out + 6 * threadIdx.x;
    const int *source = from + 4 * threadIdx.x;
    esp_copy_begin(mine, source, true);
    esp_copy_group();
    esp_copy_begin(mine + 4, source, threadIdx.x % 2 == 0);
    esp_copy_group();
    seen[0] = mine[1];
    seen[1] = mine[5];
    esp_copy_wait<1>();
    seen[2] = mine[1];
    seen[3] = mine[5];
    esp_copy_wait<0>();
    seen[4] = mine[1];
    seen[5] = mine[5];
}

TEST(a_copy_arrives_when_its_thread_waits)
{
    std::vector<int> values(4 * THREADS);
    for (int i = 0; i < 4 * THREADS; i++)
        values[(size_t)i] = 100 + i;
    device_array<int> from(values), out(6 * THREADS);
    ESP_LAUNCH(copy_and_look, 1, THREADS, 8 * THREADS * sizeof(int), nullptr, from.data,
               out.data);
    std::vector<int> got = out.read();
    for (int i = 0; i < THREADS; i++) {
        const int value = 100 + 4 * i + 1, other = i % 2 == 0 ? value : 0;
        const int want[6] = {NOT_READ, NOT_READ, value, NOT_READ, value, other};
        for (int j = 0; j < 6; j++)
            CHECK(got[(size_t)(6 * i + j)] == want[j], "thread %d, look %d: %d", i, j,
                  got[(size_t)(6 * i + j)]);
    }
}

static __global__ void copy_beyond(const int *from)
{
    ESP_SHARED(int, room);
    esp_copy_begin(room + 4 * threadIdx.x, from, true);
}

TEST(a_copy_outside_shared_memory_is_detected)
{
    std::string words = last_words([] {
        device_array<int> from(std::vector<int>(4, 0));
        ESP_LAUNCH(copy_beyond, 1, 3, 2 * 16, nullptr, from.data);
        from.read();
    });
    CHECK(words.find("outside shared memory") != std::string::npos, "%s", words.c_str());
}

/* ------------------------------------------------------------------ matrices */

/* Writes which elements of the four matrices each lane gets. 64 m + 8 i + j stands for the
 * element in row i and column j of matrix m. */
static __global__ void load_numbers(int *out, bool turned)
{
    ESP_SHARED(uint16_t, room);
    const int lane = (int)threadIdx.x;
    uint32_t r[4];
    for (int i = lane; i < 256; i += 32)
        room[i] = (uint16_t)i;
    __syncthreads();
    esp_load_matrices(r, room + 8 * lane, turned);
    for (int i = 0; i < 4; i++) {
        out[8 * lane + 2 * i] = (int)(r[i] & 0xffff);
        out[8 * lane + 2 * i + 1] = (int)(r[i] >> 16);
    }
}

TEST(matrices_are_distributed_over_the_lanes)
{
    for (int turned = 0; turned < 2; turned++) {
        device_array<int> out(256);
        ESP_LAUNCH(load_numbers, 1, 32, 512, nullptr, out.data, turned != 0);
        std::vector<int> got = out.read();
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 8; i++) {
                const int group = lane / 4, at = lane % 4 * 2 + i % 2;
                const int want = 64 * (i / 2) + (turned ? 8 * at + group : 8 * group + at);
                CHECK(got[(size_t)(8 * lane + i)] == want, "lane %d, number %d: %d", lane, i,
                      got[(size_t)(8 * lane + i)]);
            }
    }
}

/* ------------------------------------------------------------------ bank conflicts */

/* Each lane reads a value of type V, `stride` floats after the value that the previous lane
 * reads. */
template <typename V> static __global__ void read_apart(int stride, float *out)
{
    ESP_SHARED(float, room);
    const int i = (int)threadIdx.x;
    esp_shared_put(room + i, 0.0f);
    const V value = esp_shared_get(reinterpret_cast<const V *>(room + i * stride));
    memcpy(out + i, &value, sizeof *out);
}

/* Returns how many cycles one warp needs to read its values. */
template <typename V> static long cycles_of(int stride)
{
    device_array<float> out(32);
    struct emu_banks banks;
    long cycles = -1;
    emu_count_banks(true);
    ESP_LAUNCH(read_apart<V>, 1, 32, 33 * 64 * sizeof(float), nullptr, stride, out.data);
    OK(cudaDeviceSynchronize());
    for (int i = 0; emu_banks_of(i, &banks); i++) {
        CHECK(strncmp(banks.kernel, "read_apart<", 11) == 0, "%s", banks.kernel);
        CHECK(strncmp(banks.place, "read_apart", 10) == 0 && banks.blocks == 1 &&
                  banks.accesses == 2,
              "%s: %ld accesses", banks.place, banks.accesses);
        cycles = banks.cycles - 1; /* the write takes one cycle */
    }
    emu_count_banks(false);
    return cycles;
}

TEST(bank_conflicts_are_counted)
{
    CHECK(cycles_of<float>(1) == 1, "an access to 32 banks takes one cycle");
    CHECK(cycles_of<float>(0) == 1, "an access of all lanes to one word takes one cycle");
    CHECK(cycles_of<float>(2) == 2 && cycles_of<float>(4) == 4 && cycles_of<float>(32) == 32 &&
              cycles_of<float>(33) == 1,
          "an access takes as many cycles as the busiest bank has words");
    CHECK(cycles_of<float2>(2) == 2 && cycles_of<float2>(4) == 4,
          "an access of 8 bytes serves half a warp at a time");
    CHECK(cycles_of<float4>(4) == 4 && cycles_of<float4>(8) == 8,
          "an access of 16 bytes serves a quarter of a warp at a time");
}

/* ---------------------------------------------------------------- kernels that begin early */

static __global__ void wait_or_not(int waiting)
{
    if ((int)threadIdx.x < waiting)
        esp_wait_previous();
}

TEST(a_kernel_that_begins_early_must_wait_for_the_previous_one)
{
    ESP_LAUNCH_EARLY(true, wait_or_not, 2, 32, 0, nullptr, 32);
    ESP_LAUNCH_EARLY(false, wait_or_not, 2, 32, 0, nullptr, 0);
    OK(cudaDeviceSynchronize());
    DIES("without having waited", ESP_LAUNCH_EARLY(true, wait_or_not, 2, 32, 0, nullptr, 31);
         cudaDeviceSynchronize());
}
