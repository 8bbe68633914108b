// Live figures are light or dark as the page around them is.
(() => {
  const dark = () => {
    const asked = document.body.dataset.theme;
    return asked === "dark" || (asked !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  };
  const tell = (frame) => frame.contentWindow.postMessage({ tokenflockTheme: dark() ? "dark" : "light" }, "*");
  const all = () => document.querySelectorAll("iframe.live").forEach(tell);
  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("iframe.live").forEach((frame) => frame.addEventListener("load", () => tell(frame)));
    new MutationObserver(all).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  });
})();
