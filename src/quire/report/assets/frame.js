// What is around the marks: the members' lines, the axis, and below which part of the window is in sight.
const makeFrame = (model, layout, { context, colours, size, state }) => {
  const drawMembers = () => {
    const narrow = layout.left < 60, every = Math.ceil(14 / size.row);
    model.members.forEach((member, row) => {
      const y = size.yOf(row);
      context.strokeStyle = colours.rule;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(layout.left, y);
      context.lineTo(layout.width - layout.right, y);
      context.stroke();
      if (row % every) return;
      context.font = `12.5px ${colours.font}`;
      context.textAlign = "right";
      context.fillStyle = colours.soft;
      context.fillText(narrow ? `${member}` : sayMember(member, model), layout.left - 23, y + 4.5);
      const colour = colours.colourOf(member);
      if (!colour || state.chosen) return;
      context.fillStyle = colour;
      context.beginPath();
      context.arc(layout.left - 13, y, 4, 0, 7);
      context.fill();
    });
  };
  const drawTick = (x, text) => {
    context.strokeStyle = colours.rule;
    context.lineWidth = 1;
    context.globalAlpha = 0.7;
    context.beginPath();
    context.moveTo(x, size.top - 8);
    context.lineTo(x, size.height - size.bottom + 2);
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    if (x > layout.left + 8) context.fillText(text, x, 17);
  };
  const drawAxis = () => {
    context.font = `11px ${colours.font}`;
    context.textAlign = "center";
    if (layout.mode === "step") {
      let edge = layout.left - 30;
      layout.columns.forEach((column, step) => {
        const x = layout.toX(column);
        if (layout.isInSight(x) && x >= edge + 58 && (step % 5 === 0 || layout.columns.length < 40)) { drawTick(x, `${step}`); edge = x; }
      });
    } else {
      const span = layout.high - layout.low;
      let step = 10 ** Math.floor(Math.log10(span / Math.max(layout.plot() / 110, 1)));
      for (const factor of [1, 2, 5, 10]) if ((span / (step * factor)) * 110 <= layout.plot()) { step *= factor; break; }
      for (let tick = Math.ceil(layout.low / step) * step; tick <= layout.high; tick += step) drawTick(layout.toX(tick), sayTime(Math.round(tick)));
    }
    if (layout.left >= 60) { context.textAlign = "right"; context.fillText(layout.mode, layout.left - 23, 17); }
  };
  const drawOverview = () => {
    const [least, most] = layout.domain();
    const y = size.height - 10, width = layout.plot();
    if (layout.high - layout.low > (most - least) * 0.999) return;
    const at = (number) => layout.left + ((number - least) / (most - least)) * width;
    context.fillStyle = colours.wash;
    context.fillRect(layout.left, y - 4, width, 8);
    context.fillStyle = colours.faint;
    context.globalAlpha = 0.55;
    context.fillRect(at(layout.low), y - 4, Math.max(6, at(layout.high) - at(layout.low)), 8);
    context.globalAlpha = 1;
    const dot = (mark, colour) => { context.fillStyle = colour; context.fillRect(at(layout.value(mark)) - 1, y - 5, 2.5, 10); };
    for (const mark of model.all.flat()) if (state.marked.has(mark.whole)) dot(mark, colours.bad);
    if (state.chosen) state.chosen.sends.forEach((mark) => dot(mark, colours.chosen));
  };
  return { drawMembers, drawAxis, drawOverview };
};
