/** Shorter values would stand in too many words that are no secrets. */
const SHORTEST = 4;
/** And what is not the value as it is, but a part or an encoding of it, is to be longer than that. */
const SHORTEST_DERIVED = 8;

/** Longer values are not looked for in what is written twice: it has many signs for each of theirs. */
const LONGEST_TWICE = 16_384;

/**
 * How a value may be written in a text: as it is, in JSON, in URLs, in HTML, in base64, as in a Basic header, and in hex;
 * in JSON that is a text of JSON, and in URLs that are a part of URLs.
 */
export function encodingsOf(value: string): string[] {
  if (value.length < SHORTEST) return [];
  const wellFormed = value.toWellFormed();
  const escaped = [encodeURI(wellFormed), encodeURIComponent(wellFormed)];
  const once = [value, ...inJson(value), ...escaped, ...escaped.map(inSmallEscapes), ...inHex(value)];
  const spellings = value.length > LONGEST_TWICE ? once : [...once, ...twice(value, escaped)];
  if (value.length < SHORTEST_DERIVED) return spellings;
  const urls = inUrls(value);
  const derived = [...value.split(/\r?\n/), ...urls, ...urls.map(inSmallEscapes), ...inBase64(value)];
  return [...spellings, ...derived.filter((text) => text.length >= SHORTEST_DERIVED)];
}

/** Some writers escape slashes, and some everything beyond ASCII. */
function inJson(value: string): string[] {
  const usual = JSON.stringify(value).slice(1, -1);
  const ascii = usual.replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [usual, ascii].flatMap((text) => [text, text.replaceAll('/', '\\/')]);
}

/** Of a value that nothing is escaped in, none is another one. */
function twice(value: string, escaped: readonly string[]): string[] {
  const urls = escaped.map((text) => encodeURIComponent(text));
  const small = escaped.map((text) => encodeURIComponent(inSmallEscapes(text)));
  return [...inJson(value).flatMap(inJson), ...inHtml(value), ...urls, ...small];
}

/** Quotes have several names, and not everybody escapes them. */
function inHtml(value: string): string[] {
  const text = value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  if (!/["']/.test(value)) return [text];
  const double = ['"', '&quot;', '&#34;'].map((name) => text.replaceAll('"', name));
  return double.flatMap((half) =>
    ["'", '&#39;', '&#x27;', '&apos;'].map((name) => half.replaceAll("'", name)),
  );
}

function inHex(value: string): string[] {
  const hex = Buffer.from(value).toString('hex');
  return [hex, hex.toUpperCase()];
}

/** `%2f` is as good as `%2F`. */
function inSmallEscapes(text: string): string {
  return text.replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase());
}

/** A URL escapes other characters than `encodeURI` does, and others in each of its parts. */
function inUrls(value: string): string[] {
  const inUserInfo = new URL('http://host/');
  inUserInfo.password = value;
  return [
    ...['', '?=', '#'].map((before) => afterHost(`${before}${value}`).slice(before.length)),
    // Of a value with a question mark in it, the path is a part.
    afterHost(value).split('?')[0]!,
    inUserInfo.password,
    asHost(value),
    new URLSearchParams([['', value]]).toString().slice(1),
  ];
}

/** In small letters and in ASCII; nothing where it is more than a host, since a part of it may be any word. */
function asHost(value: string): string {
  const url = URL.parse(`http://${value}/`);
  return url?.href === `http://${url?.hostname}/` ? url.hostname : '';
}

function afterHost(rest: string): string {
  return new URL(`http://host/${rest}`).href.slice('http://host/'.length);
}

/** Three bytes are four characters, so how it looks depends on how many bytes stand before it. */
function inBase64(value: string): string[] {
  const bytes = Buffer.from(value);
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    // The characters at its edges hold bits of its neighbours too.
    const start = Math.ceil((before * 8) / 6);
    const end = Math.floor((padded.length * 8) / 6);
    return [padded.toString('base64').slice(start, end), padded.toString('base64url').slice(start, end)];
  });
}
