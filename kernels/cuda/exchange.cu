/* exchange.cu - lets the ranks of a pass, one per GPU, exchange columns of a result. Each rank
 * has computed some of these columns.
 *
 * A kernel packs a rank's columns into one block, an all-gather copies this block to the other
 * GPUs, and a kernel unpacks the received blocks into the columns of the matrix. All blocks are
 * as large as the largest one, because an all-gather needs blocks of equal size.
 */
#include "kernels/cuda/gpus.h"
#include "kernels/cuda/norm.h"

/* LOGITS_ROWS: number of rows of logits that are exchanged at a time. */
enum { THREADS = 256, PIECES = 3, ALIGNED = 16, LOGITS_ROWS = 64 };

/* Describes a matrix whose columns are exchanged. `per` columns of a row take `bytes` bytes. */
struct piece {
    char *at;
    size_t stride; /* bytes between rows */
    int bytes, per;
};

struct exchange_args {
    struct piece piece[PIECES];
    int begin[ESP_MAX_RANKS + 1]; /* rank r computes columns begin[r]..begin[r + 1] - 1 */
    bool logits;                  /* true: exchanges logits, which only rank 0 gets */
    int rank, rows, each;         /* each: rows of the matrices for each row of the pass */
    int first;                    /* the first row of the exchange */
    size_t row_bytes;             /* bytes of a rank's row in `exchanged` */
    char *exchanged;              /* (ranks, rows, row_bytes) */
    int state, n;                 /* columns 0..n-1 of piece 0 are hidden state `state` */
};

static __host__ __device__ inline size_t bytes_of(const struct piece &p, int columns)
{
    return (size_t)columns * p.bytes / p.per;
}

/* Returns where the row that this block copies begins in a rank's part of `exchanged`. */
static __device__ __forceinline__ char *row_of(const struct exchange_args &a, int rank)
{
    return a.exchanged + ((size_t)rank * a.rows + blockIdx.x) * a.row_bytes;
}

/* Returns the number of rows of the matrices in this pass. */
static __device__ __forceinline__ int rows_of(const struct esp_cuda_arrays &at,
                                              const struct exchange_args &a)
{
    return a.logits ? at.pass->wanted : at.pass->rows * a.each;
}

static __device__ __forceinline__ uint32_t *logits_of(const struct esp_cuda_arrays &at, int row)
{
    return (uint32_t *)(at.pass->logits + (size_t)at.wanted_at[row] * at.pass->logits_stride);
}

/* Packs the columns that this rank has computed. Grid: (rows). */
static __global__ void pack_kernel(struct esp_cuda_arrays at, struct exchange_args a)
{
    const int row = a.first + blockIdx.x, begin = a.begin[a.rank];
    if (row >= rows_of(at, a))
        return;
    uint32_t *to = (uint32_t *)row_of(a, a.rank);
    for (int i = threadIdx.x; a.logits && i < a.begin[a.rank + 1] - begin; i += THREADS)
        to[i] = logits_of(at, row)[i];
    for (int k = 0; k < PIECES && a.piece[k].at; k++) {
        const struct piece &p = a.piece[k];
        const uint32_t *from = (const uint32_t *)(p.at + row * p.stride + bytes_of(p, begin));
        const int words = (int)(bytes_of(p, a.begin[a.rank + 1] - begin) / sizeof *to);
        for (int i = threadIdx.x; i < words; i += THREADS)
            to[i] = from[i];
        to += words;
    }
}

/* Unpacks the columns that the other ranks have computed. If these are hidden states that the
 * caller wants, also writes them to the caller's matrix. Grid: (rows, ranks). */
static __global__ void unpack_kernel(struct esp_cuda_arrays at, struct exchange_args a)
{
    const int row = a.first + blockIdx.x, rank = blockIdx.y, begin = a.begin[rank];
    if (row >= rows_of(at, a) || rank == a.rank)
        return;
    const uint32_t *from = (const uint32_t *)row_of(a, rank);
    const int most = at.pass->logits_vocabulary,
              end = a.begin[rank + 1] < most ? a.begin[rank + 1] : most;
    for (int i = begin + threadIdx.x; a.logits && i < end; i += THREADS)
        logits_of(at, row)[i] = from[i - begin];
    for (int k = 0; k < PIECES && a.piece[k].at; k++) {
        const struct piece &p = a.piece[k];
        uint32_t *to = (uint32_t *)(p.at + row * p.stride + bytes_of(p, begin));
        const int words = (int)(bytes_of(p, a.begin[rank + 1] - begin) / sizeof *to);
        for (int i = threadIdx.x; i < words; i += THREADS) {
            to[i] = from[i];
            if (k == 0 && begin + i < a.n)
                esp_cuda_hand_out(at, a.state, row, begin + i, a.n, __uint_as_float(from[i]));
        }
        from += words;
    }
}

/* Lists the pieces, which are the matrices that are exchanged. Returns the number of pieces. */
static int list_pieces(const struct esp_cuda_cache *c, const struct esp_cuda_exchange *e,
                       struct piece *piece)
{
    const int active = esp_cuda_weights_of(c)->blocks ? sizeof(float) : 2;
    char *const of_x = (char *)(e->pairs                                         ? c->pair_out
                                : esp_model_desc_has_branch(esp_cuda_desc_of(c)) ? c->branch
                                                                                 : c->x);
    switch (e->kind) {
    case ESP_RANK_HEAD:
        piece[0] = {NULL, 0, sizeof(float), 1};
        return 1;
    case ESP_RANK_ATTENTION:
        piece[0] = {(char *)c->attended, c->q_width * 2, 2, 1};
        return 1;
    case ESP_RANK_MLP:
        piece[0] = {(char *)c->active, c->ffn * active, active, 1};
        return 1;
    case ESP_RANK_EXPERTS:
        piece[0] = {(char *)c->pair_active, c->expert_ffn * active, active, 1};
        return 1;
    default:
        piece[0] = {of_x, c->hidden * sizeof(float), sizeof(float), 1};
        piece[1] = {(char *)c->normed, c->hidden * 2, 2, 1};
        piece[2] = {(char *)c->squares, c->hidden / ESP_CUDA_TILE * sizeof(float),
                    sizeof(float), ESP_CUDA_TILE};
        return e->halves ? PIECES : 1;
    }
}

/* Fills in the arguments of the kernels, except `exchanged`, `first` and `rows`. */
static void set_up(const struct esp_cuda_cache *c, const struct esp_cuda_exchange *e,
                   struct exchange_args *a)
{
    const struct esp_cuda_part *part = esp_cuda_weights_of(c)->part;
    const struct esp_model_desc *d = part->all;
    const int columns = e->kind == ESP_RANK_ATTENTION ? d->heads / d->kv_heads * d->head_dim
                                                      : 1; /* columns per unit of the plan */
    *a = exchange_args();
    const int pieces = list_pieces(c, e, a->piece);
    for (int k = pieces; k < PIECES; k++)
        a->piece[k].at = NULL;
    for (int r = 0; r <= part->plan.ranks; r++)
        a->begin[r] = part->plan.begin[e->kind][r] * columns;
    a->logits = e->kind == ESP_RANK_HEAD;
    if (e->kind != ESP_RANK_ATTENTION &&
        !a->logits) /* include the zeros after the last column */
        a->begin[part->plan.ranks] =
            (int)esp_cuda_pad(a->begin[part->plan.ranks], ESP_CUDA_PAD);
    for (int r = 0; r < part->plan.ranks; r++) {
        size_t bytes = 0;
        for (int k = 0; k < pieces; k++)
            bytes += bytes_of(a->piece[k], a->begin[r + 1] - a->begin[r]);
        bytes = esp_cuda_pad(bytes, ALIGNED);
        a->row_bytes = bytes > a->row_bytes ? bytes : a->row_bytes;
    }
    a->rank = part->rank;
    a->each = e->pairs ? d->experts_used : 1;
    a->state = e->halves ? e->state : ESP_CUDA_NO_STATE;
    a->n = d->hidden;
}

size_t esp_cuda_exchange_need(const struct esp_cuda_cache *c)
{
    const struct esp_cuda_part *part = esp_cuda_weights_of(c)->part;
    const bool experts = part->all->experts > 0;
    const struct esp_cuda_exchange all[] = {
        {ESP_RANK_HEAD, 0, false, false, 0},   {ESP_RANK_ATTENTION, 0, false, false, 0},
        {ESP_RANK_OUTPUT, 0, false, true, 0},  {ESP_RANK_MLP, 0, false, false, 0},
        {ESP_RANK_EXPERTS, 0, true, false, 0}, {ESP_RANK_DOWN, 0, false, true, 0},
        {ESP_RANK_DOWN, 0, true, false, 0}};
    size_t most = 0;
    for (const struct esp_cuda_exchange &e : all) {
        struct exchange_args a;
        if (!esp_cuda_divides(c, e.kind) || (e.pairs && !experts))
            continue;
        set_up(c, &e, &a);
        const int rows =
            a.logits && c->max_batch > LOGITS_ROWS ? (int)LOGITS_ROWS : c->max_batch * a.each;
        const size_t bytes = (size_t)part->plan.ranks * rows * a.row_bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Exchanges e->rows rows, beginning with row `first`. */
static int share_rows(struct esp_cuda_cache *c, const struct esp_cuda_exchange *e, int first)
{
    struct esp_cuda_gpus *gpus = esp_cuda_backend_of(c)->gpus;
    struct exchange_args a[ESP_MAX_RANKS];
    char *at[ESP_MAX_RANKS];
    int ranks = 0;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        struct exchange_args *of = &a[ranks];
        set_up(r, e, of);
        of->first = first;
        of->rows = e->rows * of->each;
        of->exchanged = at[ranks++] = r->exchanged;
        ESP_LAUNCH(pack_kernel, dim3(of->rows), dim3(THREADS), 0,
                   esp_cuda_backend_of(r)->stream, r->at, *of);
    }
    const int status = esp_loading_kernels
                           ? (int)ESP_OK
                           : esp_cuda_all_gather(gpus, at, a[0].rows * a[0].row_bytes);
    ranks = 0;
    for (struct esp_cuda_cache *r = c; esp_cuda_enter_rank(r); r = r->next) {
        const struct exchange_args *of = &a[ranks++];
        if (status == ESP_OK && (!of->logits || r == c))
            ESP_LAUNCH(unpack_kernel, dim3(of->rows, gpus->count), dim3(THREADS), 0,
                       esp_cuda_backend_of(r)->stream, r->at, *of);
    }
    esp_cuda_launched(esp_cuda_backend_of(c), "exchange", 0);
    return status;
}

int esp_cuda_share(struct esp_cuda_cache *c, const struct esp_cuda_exchange *e)
{
    struct esp_cuda_exchange some = *e;
    int status = ESP_OK;
    if (!esp_cuda_divides(c, e->kind))
        return ESP_OK;
    for (int first = 0; first < e->rows && status == ESP_OK; first += some.rows) {
        const int left = e->rows - first;
        some.rows = e->kind == ESP_RANK_HEAD && left > LOGITS_ROWS ? (int)LOGITS_ROWS : left;
        status = share_rows(c, &some, first);
    }
    return status;
}
