// Light and dark: as the machine says, until the reader says otherwise.
const root = document.documentElement;
const machineIsDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : machineIsDark.matches);
const themeButton = document.createElement("button");
themeButton.type = "button";
themeButton.className = "theme";
const nameTheme = () => {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
};
const themeListeners = [];
const themeChanged = () => { nameTheme(); themeListeners.forEach((listener) => listener()); };
themeButton.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; themeChanged(); });
machineIsDark.addEventListener("change", themeChanged);
nameTheme();
document.querySelector("header").append(themeButton);
