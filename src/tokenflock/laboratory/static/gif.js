// A film as a GIF: colours that occur most, and LZW. Plain bytes, made in the page.

const Gif = (() => {
  class Bytes {
    constructor() { this.list = []; }
    word(value) { this.list.push(value & 255, value >> 8 & 255); }
    text(words) { for (const letter of words) this.list.push(letter.charCodeAt(0)); }
    blob() { return new Blob([Uint8Array.from(this.list)], { type: "image/gif" }); }
  }

  // The 255 commonest colours of some pictures, five bits each, as they are on average.
  function palette(pictures) {
    const bins = new Map();
    for (const { data } of pictures) for (let k = 0; k < data.length; k += 4) {
      const key = data[k] >> 3 << 10 | data[k + 1] >> 3 << 5 | data[k + 2] >> 3;
      const bin = bins.get(key) || bins.set(key, [0, 0, 0, 0]).get(key);
      bin[0] += 1; for (let c = 0; c < 3; c++) bin[c + 1] += data[k + c];
    }
    const common = [...bins.values()].sort((a, b) => b[0] - a[0]).slice(0, 255);
    return common.map(([count, ...sums]) => sums.map((sum) => Math.round(sum / count)));
  }

  function places(picture, colours, known) { // the nearest colour of each pixel
    const { data } = picture, found = new Uint8Array(data.length / 4);
    for (let k = 0; k < found.length; k++) {
      const r = data[4 * k], g = data[4 * k + 1], b = data[4 * k + 2], key = r << 16 | g << 8 | b;
      let place = known.get(key);
      if (place === undefined) {
        let least = Infinity;
        colours.forEach((each, c) => { const far = (each[0] - r) ** 2 + (each[1] - g) ** 2 + (each[2] - b) ** 2; if (far < least) { least = far; place = c; } });
        known.set(key, place);
      }
      found[k] = place;
    }
    return found;
  }

  function compressed(bytes, out) { // LZW of eight bits, in blocks of 255 bytes
    const CLEAR = 256, END = 257;
    let table = new Map(), next = 258, size = 9, held = 0, bits = 0, block = [];
    const flush = () => { if (block.length) { out.list.push(block.length, ...block); block = []; } };
    const write = (code) => {
      held |= code << bits; bits += size;
      while (bits >= 8) { block.push(held & 255); held >>= 8; bits -= 8; if (block.length === 255) flush(); }
    };
    out.list.push(8); write(CLEAR);
    let prefix = bytes[0];
    for (let k = 1; k < bytes.length; k++) {
      const key = prefix << 8 | bytes[k], code = table.get(key);
      if (code !== undefined) { prefix = code; continue; }
      write(prefix); prefix = bytes[k];
      if (next === 4096) { write(CLEAR); table = new Map(); next = 258; size = 9; continue; }
      table.set(key, next);
      if (next === 1 << size) size += 1;
      next += 1;
    }
    write(prefix); write(END);
    if (bits > 0) block.push(held & 255);
    flush(); out.list.push(0);
  }

  // Pictures of one size, each shown for some hundredths of a second.
  function film(pictures, hundredths) {
    const { width, height } = pictures[0], colours = palette(pictures.filter((_, k) => k % 8 === 0 || k === pictures.length - 1));
    const out = new Bytes(), known = new Map();
    out.text("GIF89a"); out.word(width); out.word(height); out.list.push(0xf7, 0, 0);
    for (let k = 0; k < 256; k++) out.list.push(...(colours[k] || [0, 0, 0]));
    out.list.push(0x21, 0xff, 11); out.text("NETSCAPE2.0"); out.list.push(3, 1, 0, 0, 0);
    for (const picture of pictures) {
      out.list.push(0x21, 0xf9, 4, 4); out.word(hundredths); out.list.push(0, 0, 0x2c);
      out.word(0); out.word(0); out.word(width); out.word(height); out.list.push(0);
      compressed(places(picture, colours, known), out);
    }
    out.list.push(0x3b);
    return out.blob();
  }

  return { film };
})();
