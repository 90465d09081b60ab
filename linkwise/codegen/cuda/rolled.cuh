// Device functions of kernels with loops over the links, after those of device.cuh.
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

// What links have for all states, INTEGERS whole numbers and REALS numbers, on its way to a ring of four in shared memory:
// each lane brings its part. While a link is worked on, the next one's is there and the one after that is coming.
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
            if (at < INTEGERS) row_ring[(link & 3) * INTEGERS + at] = held[round];
        }
#pragma unroll
        for (int round = 0; round < REAL_ROUNDS; ++round) {
            const int at = round * LW_LANES + lw_lane();
            if (at < REALS) constant_ring[(link & 3) * REALS + at] = held_constants[round];
        }
    }

    LW_INLINE void begin()
    {
        fetch(0);
        put(0);
        fetch(1);
        put(1);
        fetch(2);
        __syncwarp(LW_MASK);
    }

    LW_INLINE void advance(int link)
    {
        put(link + 2);
        fetch(link + 3);
    }

    LW_INLINE const int *row(int link) const { return row_ring + (link & 3) * INTEGERS; }
    LW_INLINE const REAL *constants_of(int link) const { return constant_ring + (link & 3) * REALS; }
};

// Angles that are in memory, with their sines and cosines.
LW_INLINE void lw_all_angles(const REAL *angles, REAL *sines, REAL *cosines, int count)
{
#pragma unroll 2
    for (int e = 0; e < count; ++e) {
        const long long at = (long long)e * LW_LANES;
        REAL sine, cosine;
        lw_sincos(lw_within_a_turn(angles[at]), sine, cosine);
        sines[at] = sine;
        cosines[at] = cosine;
    }
}
