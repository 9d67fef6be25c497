/* libcuda.so: empty except for its name and its dependency on libcuda.so.1.
 *
 * Some programs load the driver by the name that is meant for linkers. The loader does not know that this is the
 * library it already has, and would find the driver's own file. Preloaded under that name, this library leads them to
 * the facade. */
typedef int nothing;
