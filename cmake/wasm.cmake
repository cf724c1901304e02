# dabnet.wasm: the core as one file for browsers, Node and whatever else runs WebAssembly. It exports dabnet.h, malloc and
# free. The stack lies below all data, so that what overflows it leaves memory and is stopped.
target_sources(dabnet_core PRIVATE native/kernels/wasm_simd.cpp)
target_compile_definitions(dabnet_core PRIVATE DABNET_WASM)
target_compile_options(dabnet_core PRIVATE -msimd128 -fno-rtti -g0)
set_target_properties(dabnet_core PROPERTIES POSITION_INDEPENDENT_CODE OFF)

# It is sent to browsers: what runs once for a file, or seldom, is made small.
get_target_property(sources dabnet_core SOURCES)
list(FILTER sources INCLUDE REGEX "api|bit_conv|byte_conv|count_conv|drawings|elementwise|model/|parallel|picture/|plan/|portable|rank|raster_bitmap|subset_conv|sum_conv|group_conv|whole")
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-Oz;-fno-vectorize")
set_source_files_properties(native/layers/float_conv.cpp PROPERTIES COMPILE_OPTIONS -fno-vectorize)

file(READ native/dabnet.h header)
string(REGEX MATCHALL "dabnet_[a-z_]+\\(" exports "${header}")
list(TRANSFORM exports REPLACE "\\(" "")
list(TRANSFORM exports PREPEND "-Wl,--export=")
set(link_options -mexec-model=reactor -s -Wl,-z,stack-size=1048576 -Wl,--export=malloc -Wl,--export=free ${exports})

add_executable(dabnet_wasm $<TARGET_OBJECTS:dabnet_core>)
set_target_properties(dabnet_wasm PROPERTIES OUTPUT_NAME dabnet SUFFIX .wasm)
target_link_options(dabnet_wasm PRIVATE ${link_options})

if(DABNET_TESTS)
  add_executable(compare_kernels native/tests/compare_kernels.cpp $<TARGET_OBJECTS:dabnet_core>)
  set_target_properties(compare_kernels PROPERTIES SUFFIX .wasm)
  target_compile_options(compare_kernels PRIVATE -fno-exceptions)
endif()
