const SCHEME = 'resource://';
/** Clients know user interfaces of tools by it, so it stays in front. */
const UI_SCHEME = 'ui://';

/** What stands in front of a server's own URI to make it public. A plain prefix: lossless, and right for templates. */
export function uriPrefix(server: string, ownUri: string): string {
  return `${ownUri.startsWith(UI_SCHEME) ? UI_SCHEME : SCHEME}${encodeURIComponent(server)}/`;
}

export function publicUri(server: string, ownUri: string): string {
  return uriPrefix(server, ownUri) + ownUri;
}

/** The server and its own URI, where the URI is a public one of ours. */
export function parsePublicUri(uri: string): { server: string; ownUri: string } | undefined {
  const scheme = [SCHEME, UI_SCHEME].find((one) => uri.startsWith(one));
  if (scheme === undefined) return undefined;
  const slash = uri.indexOf('/', scheme.length);
  if (slash === -1) return undefined;
  const ownUri = uri.slice(slash + 1);
  // A server's own one has only one scheme in it.
  if (scheme === UI_SCHEME && !ownUri.startsWith(UI_SCHEME)) return undefined;
  try {
    return { server: decodeURIComponent(uri.slice(scheme.length, slash)), ownUri };
  } catch {
    return undefined;
  }
}

/** Nobody has longer ones, and a test takes time in proportion. */
const LONGEST_URI = 16 * 1024;

/**
 * A test for the URIs that a URI template can stand for. It may accept more than the template does, never less. It
 * does not go back and try again, as a regular expression would: templates come from servers, and must not hold us up.
 */
export function templateMatcher(template: string): (uri: string) => boolean {
  const parts = template.split(/(\{[^{}]*\})/).filter((part) => part !== '');
  return (uri) => {
    if (uri.length > LONGEST_URI) return false;
    // All places of the URI up to which the parts so far can stand for it.
    let reached: ReadonlySet<number> = new Set([0]);
    for (const part of parts) {
      reached = /^\{.*\}$/s.test(part)
        ? afterExpression(uri, reached, part)
        : afterLiteral(uri, reached, part);
    }
    return reached.has(uri.length);
  };
}

function afterLiteral(uri: string, reached: ReadonlySet<number>, literal: string): Set<number> {
  const next = new Set<number>();
  for (const place of reached) if (uri.startsWith(literal, place)) next.add(place + literal.length);
  return next;
}

/** An expression stands for anything, but for slashes only where its operator or an explosion allows them. */
function afterExpression(uri: string, reached: ReadonlySet<number>, expression: string): Set<number> {
  const takesSlashes = /^\{[+#/?&;.]|\*\}$/.test(expression);
  const next = new Set<number>();
  for (const place of reached) {
    for (let end = place; !next.has(end); end++) {
      next.add(end);
      if (end === uri.length || (uri[end] === '/' && !takesSlashes)) break;
    }
  }
  return next;
}
