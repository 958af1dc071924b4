// The pictures follow the switch of the colours; without this, they follow the system only.
function showPictures() {
  const isDark = document.body.dataset.mdColorScheme === "slate";
  for (const source of document.querySelectorAll("picture source[media]")) {
    source.media = isDark ? "all" : "not all";
  }
}

new MutationObserver(showPictures).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
});
showPictures();
