#include <algorithm>

#include "float_conv.h"

namespace dabnet {
namespace {

// A convolution of real numbers with a max-pool after it: of the convolution's rows only those are kept that a row of
// the pool needs, and of all positions that see blank paper only one.
class PooledConv : public Layer {
   public:
    PooledConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue, const Window& pool)
        : conv_(kernels, convolution), pool_(pool), before_(activation_of(epilogue)), after_(signs_of(epilogue)) {}

    std::uint64_t pieces() const override { return pool_.height.positions; }
    double work() const override {
        const double pooled = static_cast<double>(pool_.positions()) * static_cast<double>(pool_.taps());
        return conv_.work() + pooled * static_cast<double>(conv_.filters());
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        const Axis& height = pool_.height;
        // With dilation and padding, a row of the pool may see more at either end than the one before or after it.
        std::size_t next = conv_.rows(), end = 0;
        for (std::size_t row = job.from; row < job.to; ++row) {
            next = std::min(next, height.at(row, height.first(row)));
            end = std::max(end, height.at(row, height.end(row) - 1) + 1);
        }
        if (!conv_.start(job, next, end, scratch.conv)) return;
        Epilogue before = before_.bind(job);
        before.real = scratch.rows;
        conv_.make_blank(before, kept_rows() * conv_.columns());
        const Epilogue after = after_.bind(job);
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (; next <= height.at(row, height.end(row) - 1); ++next) {
                const std::size_t first = next % kept_rows() * conv_.columns();
                if (!conv_.make_row(job, next, before, first, scratch.conv, scratch.left_out + first)) return;
            }
            for (std::size_t i = height.first(row); i < height.end(row); ++i) {
                scratch.firsts[i] = height.at(row, i) % kept_rows() * conv_.columns();
            }
            for (std::size_t column = 0; column < pool_.width.positions; ++column) {
                if (job.is_stopped(pool_.taps() * conv_.filters())) return;
                const float* most = find_largest(row, column, scratch);
                run_epilogue(conv_.kernels(), after, row * pool_.width.positions + column, most);
            }
        }
    }

   private:
    // What the convolution needs, the first positions of the rows that a row of the pool sees, what a window of it
    // sees, the rows and a blank position, a position of the pool, and what of the rows is blank.
    struct Scratch {
        FloatConv::Scratch conv;
        std::size_t* firsts;
        const float** taps;
        float *rows, *found;
        bool* left_out;
    };
    Scratch carve(Carver& carver) const {
        const std::uint64_t positions = std::uint64_t{kept_rows()} * conv_.columns();
        return {conv_.carve(carver),
                carver.take<std::size_t>(pool_.height.kernel),
                carver.take<const float*>(pool_.taps() + 1),
                carver.take<float>((positions + 1) * conv_.filters()),
                carver.take<float>((conv_.filters() + 63) / 64 * 64),
                carver.take<bool>(positions)};
    }

    // The largest of what a window of the pool sees, of all filters.
    const float* find_largest(std::size_t row, std::size_t column, const Scratch& scratch) const {
        const auto& [height, width] = pool_;
        const float* blank = scratch.rows + kept_rows() * conv_.columns() * conv_.filters();
        std::size_t count = 0;
        bool sees_blank = false;
        for (std::size_t i = height.first(row); i < height.end(row); ++i) {
            for (std::size_t j = width.first(column); j < width.end(column); ++j) {
                const std::size_t position = scratch.firsts[i] + width.at(column, j);
                if (scratch.left_out[position]) {
                    sees_blank = true;
                } else {
                    scratch.taps[count++] = scratch.rows + position * conv_.filters();
                }
            }
        }
        if (count == 0) return blank;
        if (sees_blank) scratch.taps[count++] = blank;
        conv_.kernels().float_max(scratch.taps, count, conv_.filters(), scratch.found);
        return scratch.found;
    }

    static Epilogue activation_of(const Epilogue& planned) {
        Epilogue before = planned;
        before.makes_real = false;  // but into scratch memory
        before.signs_count = before.early_signs = before.quantized_count = 0;
        return before;
    }
    static Epilogue signs_of(const Epilogue& planned) {
        Epilogue after;
        after.filters = planned.filters;
        after.makes_real = planned.makes_real;
        std::copy(std::begin(planned.signs), std::end(planned.signs), after.signs);
        after.signs_count = after.early_signs = planned.signs_count;
        std::copy(std::begin(planned.quantized), std::end(planned.quantized), after.quantized);
        after.quantized_count = planned.quantized_count;
        return after;
    }

    std::size_t kept_rows() const { return (pool_.height.kernel - 1) * pool_.height.dilation + 1; }

    FloatConv conv_;
    Window pool_;
    EpilogueArrays before_, after_;
};

}  // namespace

std::unique_ptr<Layer> make_pooled_conv(const Kernels& kernels, const Convolution& convolution,
                                        const Epilogue& epilogue, const Window& pool) {
    return std::make_unique<PooledConv>(kernels, convolution, epilogue, pool);
}

}  // namespace dabnet
