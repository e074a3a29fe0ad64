#ifndef CTESTNAMES_H
#define CTESTNAMES_H

/// Chooses the addresses of a name, in place of a name server.
///
/// Effective in a program that links this file, for all that calls getaddrinfo(3), as libcurl does: it stands before
/// the C library's. Other names are passed on.
///
/// - Parameters:
///   - name: One name at a time.
///   - lookups: The addresses of each lookup, separated by commas; semicolons separate lookups. The last lookup's are
///     those of all later ones.
void ctestnames_resolve(const char *name, const char *lookups);

#endif
