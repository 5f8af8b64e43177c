/** Shorter values occur in too many other words. */
const SHORTEST = 4;
/** For parts and encodings of a value, which are more likely to match by accident. */
const SHORTEST_DERIVED = 8;

/** Longer values are not searched in doubly escaped text, which has many characters for each of theirs. */
const LONGEST_DOUBLY_ESCAPED = 16_384;

/**
 * The ways in which a value may appear in a text: plain, in JSON, URLs, HTML, base64 (as in a Basic header) and hex, and doubly
 * escaped in JSON and URLs.
 */
export function encodingsOf(value: string): string[] {
  if (value.length < SHORTEST) return [];
  const wellFormed = value.toWellFormed();
  const escaped = [encodeURI(wellFormed), encodeURIComponent(wellFormed)];
  const once = [value, ...inJson(value), ...escaped, ...escaped.map(withLowercaseEscapes), ...inHex(value)];
  const direct = value.length > LONGEST_DOUBLY_ESCAPED ? once : [...once, ...doublyEscaped(value, escaped)];
  if (value.length < SHORTEST_DERIVED) return direct;
  const urls = inUrls(value);
  const derived = [...value.split(/\r?\n/), ...urls, ...urls.map(withLowercaseEscapes), ...inBase64(value)];
  return [...direct, ...derived.filter((text) => text.length >= SHORTEST_DERIVED)];
}

/** Some encoders escape slashes, and some all non-ASCII characters. */
function inJson(value: string): string[] {
  const usual = JSON.stringify(value).slice(1, -1);
  const ascii = usual.replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [usual, ascii].flatMap((text) => [text, text.replaceAll('/', '\\/')]);
}

function doublyEscaped(value: string, escaped: readonly string[]): string[] {
  const urls = escaped.map((text) => encodeURIComponent(text));
  const small = escaped.map((text) => encodeURIComponent(withLowercaseEscapes(text)));
  return [...inJson(value).flatMap(inJson), ...inHtml(value), ...urls, ...small];
}

/** Quotes have several entities, and some encoders leave them unescaped. */
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

/** Percent escapes are case-insensitive. */
function withLowercaseEscapes(text: string): string {
  return text.replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase());
}

/** URLs escape other characters than `encodeURI`, and each part of a URL has its own set. */
function inUrls(value: string): string[] {
  const inUserInfo = new URL('http://host/');
  inUserInfo.password = value;
  return [
    ...['', '?=', '#'].map((before) => afterHost(`${before}${value}`).slice(before.length)),
    // The path ends at a question mark in the value.
    afterHost(value).split('?')[0]!,
    inUserInfo.password,
    asHost(value),
    new URLSearchParams([['', value]]).toString().slice(1),
  ];
}

/** Lowercase ASCII. Empty unless the value is a plain host, because a part of it could be any word. */
function asHost(value: string): string {
  const url = URL.parse(`http://${value}/`);
  return url?.href === `http://${url?.hostname}/` ? url.hostname : '';
}

function afterHost(rest: string): string {
  return new URL(`http://host/${rest}`).href.slice('http://host/'.length);
}

/** Three bytes become four characters, so the encoding depends on the offset of the value. */
function inBase64(value: string): string[] {
  const bytes = Buffer.from(value);
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    // The outermost characters also encode bits of the neighbouring bytes.
    const start = Math.ceil((before * 8) / 6);
    const end = Math.floor((padded.length * 8) / 6);
    return [padded.toString('base64').slice(start, end), padded.toString('base64url').slice(start, end)];
  });
}
