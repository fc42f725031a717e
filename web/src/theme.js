// The choice between light and dark, on the button of a report.

export function offerThemes() {
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const { style } = document.documentElement;
  const isDark = () => (style.colorScheme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const tell = () => button.setAttribute("aria-pressed", String(isDark()));
  button.hidden = false;
  tell();
  button.addEventListener("click", () => {
    style.colorScheme = isDark() ? "light" : "dark";
    tell();
  });
  prefersDark.addEventListener("change", tell);
}
