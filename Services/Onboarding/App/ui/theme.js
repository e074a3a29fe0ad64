// Applies the stored theme before the first paint. A classic script, because modules run later.
try {
    const theme = localStorage.getItem("fieldpost.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
    // Without storage the theme follows the system.
}
