const SCHEME = 'resource://';

/** What stands in front of a server's own URI to make it public. A plain prefix: lossless, and right for templates. */
export function uriPrefix(server: string): string {
  return `${SCHEME}${encodeURIComponent(server)}/`;
}

export function publicUri(server: string, ownUri: string): string {
  return uriPrefix(server) + ownUri;
}

/** The server and its own URI, where the URI is a public one of ours. */
export function parsePublicUri(uri: string): { server: string; ownUri: string } | undefined {
  if (!uri.startsWith(SCHEME)) return undefined;
  const slash = uri.indexOf('/', SCHEME.length);
  if (slash === -1) return undefined;
  try {
    return { server: decodeURIComponent(uri.slice(SCHEME.length, slash)), ownUri: uri.slice(slash + 1) };
  } catch {
    return undefined;
  }
}

/** A test for the URIs that a URI template can stand for. It may accept more than the template does, never less. */
export function templateMatcher(template: string): RegExp {
  const pattern = template
    .split(/(\{[^{}]*\})/)
    .map((part) => {
      if (!part.startsWith('{') || !part.endsWith('}')) return part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
      return /^\{[+#/?&;.]/.test(part) || part.endsWith('*}') ? '.*' : '[^/]*';
    })
    .join('');
  return new RegExp(`^${pattern}$`, 's');
}
