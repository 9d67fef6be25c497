/* libcuda.so: its name, its dependency on libcuda.so.1, and one answer.
 *
 * Some programs load the driver by the name that is meant for linkers. The loader does not know that this is the
 * library it already has, and would find the driver's own file. Preloaded under that name, this library leads them to
 * the facade. */

/* AddressSanitizer asks the program by this name for options before those of the environment. By default it ends each
 * program, with or without CUDA, in which another library comes before its own, as every preloaded one does. A program
 * that has such a function itself is asked instead. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}
