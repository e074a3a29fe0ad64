// Realms
