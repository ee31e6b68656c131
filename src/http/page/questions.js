// What running tools ask the person at this page.

function asked(id, { tool, call, message, schema }) {
  const box = made("form", undefined, "question"), name = made("h3", `${tool} asks`);
  name.tabIndex = -1;
  box.dataset.call = call ?? "";
  const { fields } = fieldsOf(`question-${id}`, schema);
  const trouble = made("p", "", "bad"), row = made("div", undefined, "row start");
  trouble.setAttribute("role", "alert");
  const end = (result) => { reply(id, result); box.remove(); };
  row.append(made("button", "Answer"), button("Decline", "quiet", () => end('{"action":"decline"}')),
    button("Cancel", "quiet", () => end('{"action":"cancel"}')));
  box.append(name, made("p", cut(message, 4000), "said"), ...fields, trouble, row);
  box.onsubmit = (event) => {
    event.preventDefault();
    try { end(`{"action":"accept","content":${typed(box)}}`); } catch (error) { write(trouble, shown(error.message)); }
  };
  $("questions").append(box);
  box.scrollIntoView({ block: "nearest" });
  name.focus({ preventScroll: true });
}

// No question of a call that has ended is answered any more.
function unasked(call) {
  for (const box of [...$("questions").children]) if (call === undefined || box.dataset.call === call) box.remove();
}
