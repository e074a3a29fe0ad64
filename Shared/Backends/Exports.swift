// Whoever imports the adapters has what they conform to. It is a module of its own so that an adapter of another
// package, and the contract it is held to, build without a C library.
@_exported public import BackendProtocol
