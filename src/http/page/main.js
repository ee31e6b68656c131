// What people press, and the clock.

$("form").onsubmit = call;
$("as-json").onclick = toggleJson;
$("search").oninput = list;
$("call-close").onclick = () => choose(null);
$("tool-close").onclick = () => pick(null);
$("enter").onsubmit = async (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  $("token").value = "";
  write($("enter-error"), "");
  try {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new Error("this is not a token; `hostler token operate` prints it");
    await trade({ Authorization: `Bearer ${token}` });
    await connect();
  } catch (error) {
    write($("enter-error"), shown(error.message));
  }
};

window.addEventListener("hashchange", () => enter().catch(again));
document.addEventListener("visibilitychange", looked);
setInterval(draw, 200);
setInterval(tick, 2000);
enter().catch(again);
