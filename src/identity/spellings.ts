/** An honest URI has few readings, and is shorter: what exceeds these is written to be misread. */
const MAX_READINGS = 48;
const LONGEST_URI = 2 * 1024;
const MAX_CHARACTERS = 32 * 1024;

/** URIs that every server reads alike, so that most lookups stop here. */
const plain =
  /^(?:file:\/\/|(?!file:)[a-z][a-z0-9+-]*:\/\/[a-z][a-z-]*(?:\.[a-z][a-z-]*)*)(?:\/[\w-]+(?:\.[\w-]+)*)+$/;

/** What servers may take a URI for, each in another way. */
const readings = [decoded, withSpaces, withSlashes, parsed, resolved];

/** The URI as written, and others that a server may read it as; undefined if they are too many to know. */
export function spellings(uri: string): readonly string[] | undefined {
  return plain.test(uri) ? [uri] : closure([uri]);
}

/** The spellings, and those of a server that ignores queries, fragments, or the host of a file. */
export function looseSpellings(uri: string): readonly string[] | undefined {
  const exact = spellings(uri);
  if (exact === undefined) return undefined;
  const cut = exact.map((text) => text.replace(/[?#].*/s, '').replace(/^file:\/\/[^/]+/i, 'file://'));
  return cut.every((text) => exact.includes(text)) ? exact : closure(cut, exact);
}

/** All results of any number of readings, in any order. `closed`: those whose readings are among them. */
function closure(uris: readonly string[], closed: readonly string[] = []): string[] | undefined {
  if (uris.some(({ length }) => length > LONGEST_URI)) return undefined;
  const found = new Set([...closed, ...uris]);
  const isClosed = new Set(closed);
  let characters = 0;
  for (const text of found) {
    characters += text.length;
    if (isClosed.has(text)) continue;
    for (const read of readings) found.add(read(text));
    if (found.size > MAX_READINGS || characters > MAX_CHARACTERS) return undefined;
  }
  return [...found];
}

/** Bytes that are not UTF-8 do not keep others from being decoded. */
function decoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escaped) =>
    Buffer.from(escaped.replaceAll('%', ''), 'hex').toString(),
  );
}

/** As forms are decoded. */
function withSpaces(text: string): string {
  const query = text.indexOf('?');
  return query === -1 ? text : text.slice(0, query) + text.slice(query).replaceAll('+', ' ');
}

function withSlashes(text: string): string {
  return text.replaceAll('\\', '/');
}

/** By the URL standard, without what does not change the resource: credentials, and the final dot of a host. */
function parsed(text: string): string {
  const url = URL.parse(text);
  if (url === null) return text;
  if (url.username !== '' || url.password !== '') [url.username, url.password] = ['', ''];
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
  return url.href;
}

/** As a path of files: the host is a folder, repeated slashes are one, and names have no final dots. */
function resolved(text: string): string {
  const start = /^[a-z*][a-z0-9+.*-]*:/i.exec(text)?.[0].toLowerCase() ?? '';
  const folders: string[] = [];
  for (const segment of text.slice(start.length).split('/')) {
    if (segment === '..') folders.pop();
    else if (segment !== '.' && segment !== '') folders.push(withoutFinalDots(segment));
  }
  const slashes = start === '' ? '' : start === 'file:' ? '///' : '//';
  return start + slashes + folders.join('/');
}

function withoutFinalDots(name: string): string {
  let { length } = name;
  while (length > 0 && (name[length - 1] === '.' || name[length - 1] === ' ')) length--;
  return length === 0 ? name : name.slice(0, length);
}

/** The same for texts that differ only in case, or in how characters are composed. */
export function folded(text: string): string {
  // Lower case alone depends on what follows a letter, and keeps variants of one letter apart.
  return text.normalize('NFKD').toLowerCase().toUpperCase();
}
