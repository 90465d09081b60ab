// Device functions of programs that work in device memory, after those of device.cuh and statements.cuh.
//
// The memory of a tile of LW_LANES states is laid out with neighbouring states side by side: number e of lane i is at
// e * LW_LANES + i.

// Rows to lanes and back, in squares through shared memory. Number e of state i is at array[i * row + e * step]; where
// neighbouring states are not the near ones (step is 1), lanes go along the numbers of one state after the other. Lanes
// without a state repeat the last one.
LW_INLINE void lw_to_lanes(REAL *lanes, const REAL *array, long long row, long long step, int size, int rows, REAL *square)
{
    const int lane = lw_lane();
    if (step != 1) {
        const REAL *const own = array + (lane < rows ? lane : rows - 1) * row;
#pragma unroll 8
        for (int e = 0; e < size; ++e) lanes[(long long)e * LW_LANES + lane] = own[e * step];
        return;
    }
    for (int first = 0; first < size; first += LW_LANES) {
        const int left = size - first < LW_LANES ? size - first : LW_LANES;
        if (lane < left) {
#pragma unroll
            for (int k = 0; k < LW_LANES; ++k)
                square[k * (LW_LANES + 1) + lane] = array[(k < rows ? k : rows - 1) * row + first + lane];
        }
        __syncwarp(LW_MASK);
#pragma unroll 8
        for (int e = 0; e < left; ++e)
            lanes[(long long)(first + e) * LW_LANES + lane] = square[lane * (LW_LANES + 1) + e];
        __syncwarp(LW_MASK);
    }
}

LW_INLINE void lw_from_lanes(REAL *array, const REAL *lanes, long long row, long long step, int size, int rows, REAL *square)
{
    const int lane = lw_lane();
    if (step != 1) {
        if (lane < rows) {
#pragma unroll 8
            for (int e = 0; e < size; ++e) array[lane * row + e * step] = lanes[(long long)e * LW_LANES + lane];
        }
        return;
    }
    for (int first = 0; first < size; first += LW_LANES) {
        const int left = size - first < LW_LANES ? size - first : LW_LANES;
#pragma unroll 8
        for (int e = 0; e < left; ++e)
            square[lane * (LW_LANES + 1) + e] = lanes[(long long)(first + e) * LW_LANES + lane];
        __syncwarp(LW_MASK);
        if (lane < left) {
#pragma unroll 8
            for (int k = 0; k < rows; ++k) array[k * row + first + lane] = square[k * (LW_LANES + 1) + lane];
        }
        __syncwarp(LW_MASK);
    }
}

// Several at a time, since each takes long to come; a state that goes on in place is there already.
LW_INLINE void lw_copy_some(const REAL *from, long long from_apart, REAL *to, long long to_apart, int size)
{
    if (from == to) return;
    int e = 0;
#pragma unroll 1
    for (; e + 8 <= size; e += 8) {
        REAL some[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) some[k] = from[(e + k) * from_apart];
#pragma unroll
        for (int k = 0; k < 8; ++k) to[(e + k) * to_apart] = some[k];
    }
#pragma unroll 1
    for (; e < size; ++e) to[e * to_apart] = from[e * from_apart];
}

// What links have for all states, INTEGERS whole numbers and REALS numbers, on its way to a ring in shared memory: each
// lane brings its part. While a link is worked on, those of the next LW_AHEAD links are there, one more is being put there
// and another one is coming.
template <int INTEGERS, int REALS> struct lw_records
{
    static constexpr int ROUNDS = (INTEGERS + LW_LANES - 1) / LW_LANES;
    static constexpr int REAL_ROUNDS = (REALS + LW_LANES - 1) / LW_LANES;
    const int *rows;
    const REAL *constants;
    int *row_ring;
    REAL *constant_ring;
    int last; // link
    int held[ROUNDS];
    REAL held_constants[REAL_ROUNDS + 1];

    LW_INLINE void fetch(int link)
    {
        const long long k = link < last ? link : last;
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const int at = round * LW_LANES + lw_lane();
            if (at < INTEGERS) held[round] = rows[k * INTEGERS + at];
        }
#pragma unroll
        for (int round = 0; round < REAL_ROUNDS; ++round) {
            const int at = round * LW_LANES + lw_lane();
            if (at < REALS) held_constants[round] = constants[k * REALS + at];
        }
    }

    LW_INLINE void put(int link)
    {
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const int at = round * LW_LANES + lw_lane();
            if (at < INTEGERS) row_ring[(link & (LW_RING - 1)) * INTEGERS + at] = held[round];
        }
#pragma unroll
        for (int round = 0; round < REAL_ROUNDS; ++round) {
            const int at = round * LW_LANES + lw_lane();
            if (at < REALS) constant_ring[(link & (LW_RING - 1)) * REALS + at] = held_constants[round];
        }
    }

    LW_INLINE void begin()
    {
        for (int link = 0; link <= LW_AHEAD; ++link) {
            fetch(link);
            put(link);
        }
        fetch(LW_AHEAD + 1);
        __syncwarp(LW_MASK);
    }

    LW_INLINE void advance(int link)
    {
        put(link + LW_AHEAD + 1);
        fetch(link + LW_AHEAD + 2);
    }

    LW_INLINE const int *row(int link) const { return row_ring + (link & (LW_RING - 1)) * INTEGERS; }
    LW_INLINE const REAL *constants_of(int link) const { return constant_ring + (link & (LW_RING - 1)) * REALS; }
};

// One number of this lane from device memory to shared memory, without waiting for it.
LW_INLINE void lw_ahead(REAL *to, const REAL *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
                 "n"(sizeof(REAL)));
#else
    *to = *from;
#endif
}

// All of a link's numbers are on their way.
LW_INLINE void lw_sent()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Those of all links but the last LW_AHEAD ones have arrived.
LW_INLINE void lw_arrived()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LW_AHEAD) : "memory");
#endif
}
