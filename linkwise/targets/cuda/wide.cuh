// Device functions of kernels with wide results. Every thread has its state's numbers in slots of shared memory: slot k of
// lane i is at slots[k * LW_PITCH + i], so that neither lanes side by side nor slots side by side wait for the same bank.

#define LW_PITCH (LW_LANES + 1)

// Addresses in shared memory, and numbers between registers that PTX names and variables of C++.
#ifdef __CUDA_ARCH__
typedef unsigned lw_shared;
LW_INLINE lw_shared lw_address(const REAL *slot) { return (unsigned)__cvta_generic_to_shared(slot); }
#else
typedef char *lw_shared;
LW_INLINE lw_shared lw_address(const REAL *slot) { return (char *)slot; }
#endif

#if !defined(__CUDA_ARCH__)
#define LW_GET(variable, name) variable = name
#define LW_PUT(name, value) name = value
#elif LW_BITS == 32
#define LW_GET(variable, name) asm volatile("mov.f32 %0, " #name ";" : "=f"(variable))
#define LW_PUT(name, value) asm volatile("mov.f32 " #name ", %0;" ::"f"(value))
#else
#define LW_GET(variable, name) asm volatile("mov.f64 %0, " #name ";" : "=d"(variable))
#define LW_PUT(name, value) asm volatile("mov.f64 " #name ", %0;" ::"d"(value))
#endif

// A number on its way to shared memory, where the chip can, without waiting for it; lw_arrived() waits for all.
LW_INLINE void lw_bring(REAL *slot, const REAL *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(lw_address(slot)), "l"(from), "n"(sizeof(REAL)) : "memory");
#else
    *slot = *from;
#endif
}

LW_INLINE void lw_arrived()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp(LW_MASK);
}

// Rows of N numbers, one behind the other, into N slots.
template <int N> LW_INLINE void lw_rows_in(REAL *slots, const REAL *rows, int count)
{
#pragma unroll 8
    for (int k = 0; k < N; ++k) {
        const int at = k * LW_LANES + lw_lane();
        if (at < count * N) lw_bring(slots + at % N * LW_PITCH + at / N, rows + at);
    }
}

// The same for numbers that lie apart: element e of state i is at array[e * count + i].
template <int N> LW_INLINE void lw_numbers_in(REAL *slot, const REAL *column, long long count)
{
#pragma unroll 8
    for (int k = 0; k < N; ++k) lw_bring(slot + k * LW_PITCH, column + k * count);
}

#ifdef LW_STATES // the last kernel

// What several kernels leave between them: place k of state i of a tile is at tile[k * 32 + i]. The first PLACES of them,
// of some states, to slots.
template <int PLACES> LW_INLINE void lw_gather(REAL *slots, const REAL *tile, int from)
{
#pragma unroll 8
    for (int at = threadIdx.x; at < PLACES * LW_STATES; at += LW_THREADS) {
        const int k = at / LW_STATES, i = at % LW_STATES;
        lw_bring(slots + k * (LW_STATES + 1) + i, tile + k * LW_TILE + from + i);
    }
    lw_arrived();
}

// From slots to rows of N numbers, one behind the other; the table says where each number is, and has -1 for zeros.
template <int N> LW_INLINE void lw_spread(REAL *rows, const LW_INDEX *table, const REAL *slots, int count)
{
    const int packs = lw_aligned(rows) ? count * N / LW_WIDTH : 0;
#pragma unroll 4
    for (int at = threadIdx.x; at < packs; at += LW_THREADS) {
        lw_pack pack;
#pragma unroll
        for (int k = 0; k < LW_WIDTH; ++k) {
            const int e = at * LW_WIDTH + k, place = table[e % N];
            pack.x[k] = place < 0 ? (REAL)0 : slots[place + e / N];
        }
        reinterpret_cast<lw_pack *>(rows)[at] = pack;
    }
    for (int e = packs * LW_WIDTH + threadIdx.x; e < count * N; e += LW_THREADS) {
        const int place = table[e % N];
        rows[e] = place < 0 ? (REAL)0 : slots[place + e / N];
    }
}

// The same to numbers that lie apart: element e of state i is at array[e * stride + i].
template <int N> LW_INLINE void lw_spread_apart(REAL *column, const LW_INDEX *table, const REAL *slots, int count, long long stride)
{
    for (int at = threadIdx.x; at < N * LW_STATES; at += LW_THREADS) {
        const int e = at / LW_STATES, i = at % LW_STATES;
        if (i < count) column[e * stride + i] = table[e] < 0 ? (REAL)0 : slots[table[e] + i];
    }
}

#endif
