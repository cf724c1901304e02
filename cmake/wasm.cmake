# dabnet.wasm: the core as one file for browsers, Node and whatever else runs WebAssembly. It exports dabnet.h, malloc and
# free. The stack lies below all data, so that what overflows it leaves memory and is stopped.
file(READ native/dabnet.h header)
string(REGEX MATCHALL "dabnet_[a-z_]+\\(" functions "${header}")
list(TRANSFORM functions REPLACE "(.*)\\(" "-Wl,--export=\\1")

set_target_properties(dabnet_core PROPERTIES POSITION_INDEPENDENT_CODE OFF)
add_executable(dabnet_wasm $<TARGET_OBJECTS:dabnet_core>)
set_target_properties(dabnet_wasm PROPERTIES OUTPUT_NAME dabnet SUFFIX .wasm)
target_link_options(
  dabnet_wasm
  PRIVATE
  -mexec-model=reactor
  -s
  -Wl,-z,stack-size=1048576
  -Wl,--export=malloc
  -Wl,--export=free
  ${functions})
