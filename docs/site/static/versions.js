// Fills the menu of versions. The site's versions.js, beside the versions' directories, lists them;
// it is a script and not JSON because pages that are opened as files may not fetch anything.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".versions");
  const versions = window.harebellVersions || [];
  if (!place || versions.length === 0) {
    return;
  }
  const menu = place.querySelector("select");
  for (const version of versions) {
    menu.add(new Option(version, version, false, version === place.dataset.version));
  }
  menu.addEventListener("change", () => {
    window.location.href = `${place.dataset.site}/${menu.value}/README.html`;
  });
  place.hidden = false;
});
