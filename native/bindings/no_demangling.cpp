// Wheels bring their C++ library along, and a tenth of it would be its parser of C++ names, which nanobind and a crash
// ask for names to print. Both print a name as it stands where none is given, so none is.
extern "C" __attribute__((visibility("hidden"))) char* __cxa_demangle(const char*, char*, unsigned long*, int* status) {
    if (status) *status = -1;  // no memory
    return nullptr;
}
