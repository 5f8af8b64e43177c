const SCHEME = 'resource://';
/** Stays in front, because clients recognize user interfaces of tools by it. */
const UI_SCHEME = 'ui://';

/** The prefix that makes a server's own URI public. A plain prefix is lossless and also works for templates. */
export function uriPrefix(server: string, ownUri: string): string {
  return `${ownUri.startsWith(UI_SCHEME) ? UI_SCHEME : SCHEME}${encodeURIComponent(server)}/`;
}

export function publicUri(server: string, ownUri: string): string {
  return uriPrefix(server, ownUri) + ownUri;
}

/** Returns undefined if the URI is not one of our public ones. */
export function parsePublicUri(uri: string): { server: string; ownUri: string } | undefined {
  const scheme = [SCHEME, UI_SCHEME].find((one) => uri.startsWith(one));
  if (scheme === undefined) return undefined;
  const slash = uri.indexOf('/', scheme.length);
  if (slash === -1) return undefined;
  const ownUri = uri.slice(slash + 1);
  // A server's own `ui://` URI contains the scheme only once.
  if (scheme === UI_SCHEME && !ownUri.startsWith(UI_SCHEME)) return undefined;
  try {
    return { server: decodeURIComponent(uri.slice(scheme.length, slash)), ownUri };
  } catch {
    return undefined;
  }
}

/** Matching takes time in proportion to the length; real URIs are shorter. */
const LONGEST_URI = 16 * 1024;

/**
 * Returns a test for the URIs of a template. It may accept too many URIs, never too few. It does not backtrack as a
 * regular expression would: templates come from servers and must not block us.
 */
export function templateMatcher(template: string): (uri: string) => boolean {
  const parts = template.split(/(\{[^{}]*\})/).filter((part) => part !== '');
  return (uri) => {
    if (uri.length > LONGEST_URI) return false;
    // All positions of the URI that the parts so far can match up to.
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
  for (const position of reached) if (uri.startsWith(literal, position)) next.add(position + literal.length);
  return next;
}

/** An expression matches any text, but slashes only if its operator or an explode modifier allows them. */
function afterExpression(uri: string, reached: ReadonlySet<number>, expression: string): Set<number> {
  const takesSlashes = /^\{[+#/?&;.]|\*\}$/.test(expression);
  const next = new Set<number>();
  for (const position of reached) {
    for (let end = position; !next.has(end); end++) {
      next.add(end);
      if (end === uri.length || (uri[end] === '/' && !takesSlashes)) break;
    }
  }
  return next;
}
