const MAX_DECODINGS = 3;

/**
 * The URI as written, and other URIs that a server may read it as: decoded, with dots resolved, with the scheme and host in
 * lower case. The first is the URI itself.
 */
export function spellings(uri: string): string[] {
  const found = new Set([uri]);
  let text = uri;
  for (let count = 0; count < MAX_DECODINGS; count++) {
    for (const form of [normalized(text), slashed(text), normalized(slashed(text))]) found.add(form);
    const decoded = decode(text);
    if (decoded === text) break;
    found.add(decoded);
    text = decoded;
  }
  return [...found];
}

function normalized(uri: string): string {
  const url = URL.parse(uri);
  if (url === null) return uri;
  url.hash = '';
  return url.href;
}

/** Some servers read backslashes and repeated slashes as one slash, and drop a trailing dot or slash. */
function slashed(uri: string): string {
  const plain = uri.replaceAll('\\', '/');
  const start = /^[a-z][a-z0-9+.-]*:(\/\/\/?)?/i.exec(plain)?.[0] ?? '';
  return (
    start +
    plain
      .slice(start.length)
      .replaceAll(/\/{2,}/g, '/')
      .replace(/[/.]+$/, '')
  );
}

/** Decodes what can be decoded, and leaves the rest. */
function decode(text: string): string {
  return text.replaceAll(/(%[0-9a-f]{2})+/gi, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped;
    }
  });
}
