// What an x86 processor can do, and the system lets it.
#pragma once

namespace dabnet {

// AVX2 with its registers kept by the system, and popcnt.
bool x86_has_avx2();

// That, and AVX-512 with F, BW, DQ, VL, VBMI, VNNI and VPOPCNTDQ.
bool x86_has_avx512();

}  // namespace dabnet
