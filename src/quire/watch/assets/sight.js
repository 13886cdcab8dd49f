// Pictures move only while they are in sight, or nearly: a browser that draws what nobody sees takes processors from the members
// that it watches. One that comes into sight is drawn at once, and a page that is printed has all of them.
const pictures = new Map(), inSight = new Set();
const sight = new IntersectionObserver((changes) => {
  for (const { target: { id }, isIntersecting } of changes) {
    if (!isIntersecting) inSight.delete(id);
    else if (!inSight.has(id)) { inSight.add(id); pictures.get(id)(); }
  }
}, { rootMargin: "120px" });
// `act` draws the picture of this section from the last that came.
const addPicture = (id, act) => { pictures.set(id, act); sight.observe(find(id)); };
const drawPictures = () => { for (const id of inSight) pictures.get(id)(); };
addEventListener("beforeprint", () => { for (const act of pictures.values()) act(); });
// A picture that takes long is drawn less often: drawing it, up to what the browser then lays out and paints, takes no more than
// one part in so many of the time. On a machine that is busy it takes longer, and so leaves more to the others.
const RESTS = 25;
const makePace = () => {
  let due = 0;
  return {
    isDue: () => performance.now() >= due,
    spend: (act) => {
      const began = performance.now();
      due = Infinity;
      requestAnimationFrame(() => setTimeout(() => { const painted = performance.now(); due = painted + (painted - began) * RESTS; }));
      act();
    },
  };
};
