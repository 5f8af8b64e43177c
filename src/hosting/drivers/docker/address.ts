/** Where an engine listens, or why that address cannot be used. */
export type Address =
  | { name: string; connect: { socketPath: string } | { host: string; port: number } }
  | { name: string; problem: string };

const LOOPBACK = /^(127(\.\d+){3}|localhost|\[::1\])$/;

/** Accepts a socket path, with or without `unix://`, or `tcp://127.0.0.1:2375`. */
export function readAddress(text: string): Address {
  if (!text.includes('://')) return ofSocket(text);
  if (text.startsWith('unix://')) return ofSocket(text.slice('unix://'.length));
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'tcp:' && LOOPBACK.test(url.hostname)) {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return { name: text, connect: { host, port: Number(url.port || 2375) } };
  }
  // A remote engine would publish ports on its own machine, and anyone who reaches it could use it.
  const problem = `The Docker engine at ${withoutUser(text)} cannot be used: it has to be on this machine, at a socket such as unix:///var/run/docker.sock or at tcp://127.0.0.1:2375. Set DOCKER_HOST or the setting \`hosting.engine\` to such an address.`;
  return { name: withoutUser(text), problem };
}

function ofSocket(path: string): Address {
  return { name: path, connect: { socketPath: path } };
}

function withoutUser(text: string): string {
  return text.replace(/:\/\/[^/]*@/, '://');
}
