/** What a child needs to find its programs, its home and its language, and nothing that could be a secret. */
const safeNames = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE'];
/** How programs find their way out of the network that we are in, in capitals or small letters. */
const proxyNames = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
/** Whom programs trust in the network that we are in. */
const authorityNames = [
  ...['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE'],
  ...['CURL_CA_BUNDLE', 'AWS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'DENO_CERT', 'NODE_USE_ENV_PROXY'],
];

const safe = new Set(safeNames);
const ofNetwork = new Set([...proxyNames.flatMap((name) => [name, name.toLowerCase()]), ...authorityNames]);

/**
 * The environment of a child: the safe part of ours, and what is configured for it. `inheritsNetwork`: with our proxies, and their
 * passwords, and the certificate authorities that we trust.
 */
export function childEnvironment(
  own: Record<string, string | undefined>,
  configured: Record<string, string>,
  inheritsNetwork: boolean,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const isGiven = safe.has(name) || name.startsWith('LC_') || (inheritsNetwork && ofNetwork.has(name));
    if (value !== undefined && isGiven) environment[name] = value;
  }
  return { ...environment, ...configured };
}
