/* emu_banks.cpp - counts bank conflicts of shared memory.
 *
 * Shared memory has 32 banks of 4 bytes. A warp's access takes one cycle if its lanes need
 * different banks or the same words. Otherwise it takes as many cycles as the number of
 * different words that the lanes need from the busiest bank. If each lane accesses 8 bytes,
 * only 16 lanes are served at a time; with 16 bytes, only 8 lanes. NVIDIA describes these rules
 * for all GPUs since compute capability 5.0.
 *
 * The accesses of esp_shared_get(), esp_shared_put() and ldmatrix and the writes of cp.async
 * are counted. The emulator runs the lanes of a warp one after another. So it has to guess
 * which accesses belong to the same instruction. It assumes that the n-th accesses of all lanes
 * in a function belong together. The guess is right if all lanes make the same accesses, as in
 * a pass without partly empty blocks.
 */
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/emu/emu_banks.h"

enum { lanes = 32, banks = 32, word = 4, most_warps = 32 };

bool emu_banks_counted;

struct access {
    unsigned mask;
    size_t bytes;
    std::array<uintptr_t, lanes> at;
};

/* Holds the accesses that the running block has made in one function. */
struct place {
    std::vector<access> of_warp[most_warps];
    std::array<size_t, most_warps *lanes> made = {}; /* how many accesses each thread made */
};

struct counts {
    long blocks, accesses, cycles, least;
};

static std::map<std::string, place> &running()
{
    static auto *all = new std::map<std::string, place>;
    return *all;
}

/* Returns all counts. The key of an entry is the name of a kernel and of a function. */
static std::map<std::pair<std::string, std::string>, counts> &counted()
{
    static auto *all = new std::map<std::pair<std::string, std::string>, counts>;
    return *all;
}

void emu_count_banks(bool on)
{
    emu_banks_counted = on;
    running().clear();
    counted().clear();
}

int emu_banks_of(int index, struct emu_banks *of)
{
    if (index < 0 || (size_t)index >= counted().size())
        return 0;
    auto entry = counted().begin();
    std::advance(entry, index);
    snprintf(of->kernel, sizeof of->kernel, "%s", entry->first.first.c_str());
    snprintf(of->place, sizeof of->place, "%s", entry->first.second.c_str());
    of->blocks = entry->second.blocks;
    of->accesses = entry->second.accesses;
    of->cycles = entry->second.cycles;
    of->least = entry->second.least;
    return 1;
}

void emu_banks_touch(int thread, const void *at, size_t bytes, const char *where)
{
    place &p = running()[where];
    std::vector<access> &warp = p.of_warp[thread / lanes];
    const size_t number = p.made[(size_t)thread]++;
    if (number >= warp.size())
        warp.resize(number + 1);
    warp[number].mask |= 1u << thread % lanes;
    warp[number].bytes = bytes;
    warp[number].at[(size_t)(thread % lanes)] = reinterpret_cast<uintptr_t>(at);
}

/* Returns how many cycles the access takes for the lanes first..first+count-1. */
static int cycles_of(const access &a, int first, int count)
{
    std::array<std::vector<uintptr_t>, banks> words;
    size_t most = 0;
    for (int lane = first; lane < first + count; lane++)
        for (size_t byte = 0; a.mask >> lane & 1 && byte < a.bytes; byte += word) {
            const uintptr_t w = (a.at[(size_t)lane] + byte) / word;
            std::vector<uintptr_t> &bank = words[w % banks];
            bool known = false;
            for (uintptr_t other : bank)
                known = known || other == w;
            if (!known)
                bank.push_back(w);
            most = bank.size() > most ? bank.size() : most;
        }
    return (int)most;
}

static void add(const access &a, counts *to)
{
    const int together = a.bytes <= word ? lanes : a.bytes == 2 * word ? lanes / 2 : lanes / 4;
    to->accesses++;
    for (int first = 0; first < lanes; first += together) {
        const int cycles = cycles_of(a, first, together);
        to->cycles += cycles;
        to->least += cycles > 0;
    }
}

/* Returns a short name for a function: gcc and clang write "void f(A, B<T>) [with T = X; int N
 * = 1]", and the result is "f<X, 1>". */
static std::string name_of(const char *function)
{
    const std::string text = function;
    const size_t end = text.find('('), begin = text.rfind(' ', end) + 1;
    std::string name = text.substr(begin, end - begin), values;
    for (size_t at = text.find('[', end); (at = text.find("= ", at)) != std::string::npos;) {
        at += 2;
        const size_t stop = text.find_first_of(";,]", at);
        values += (values.empty() ? "" : ", ") + text.substr(at, stop - at);
    }
    return values.empty() ? name : name + "<" + values + ">";
}

void emu_banks_end_block(const char *function)
{
    for (const auto &entry : running()) {
        counts &to = counted()[{name_of(function), entry.first}];
        to.blocks++;
        for (const std::vector<access> &warp : entry.second.of_warp)
            for (const access &a : warp)
                add(a, &to);
    }
    running().clear();
}
