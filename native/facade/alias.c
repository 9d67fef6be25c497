/* libcuda.so: empty but for its name and its need of libcuda.so.1.
 *
 * Some programs ask for the driver under the name that is meant for linkers. The loader does not see that it is the
 * library which it already has, and would find the driver's own file. Preloaded under that name, this one leads them
 * to the facade. */
typedef int nothing;
