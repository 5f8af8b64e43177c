import { connect } from 'node:tls';
import { tlsOptions, withoutBrackets } from '../channels/http-client/proxy.ts';
import { SwitchboardError } from '../errors.ts';
import { home } from '../home.ts';
import { readToken } from '../identity/token.ts';
import { isOnThisMachine } from './addresses.ts';
import { URL_VARIABLE } from './defaults.ts';
import { UnreachableError } from './exit.ts';
import { NeverSentError, type Response } from './request.ts';

const PROBE_MS = 2_000;

const untrusted =
  /^(CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)/;
const notTls = /^(EPROTO$|ERR_SSL_)/;

/** Something listens there, but not as the address says. */
export class WrongAddressError extends UnreachableError {}

/** Says why a request failed, if its address is the reason; otherwise returns the error itself. */
export async function explained(url: string, error: unknown): Promise<unknown> {
  if (!(error instanceof Error) || error instanceof UnreachableError || isOfApi(error)) return error;
  const { cause } = error;
  if (cause instanceof UnreachableError) return cause;
  if (error instanceof NeverSentError) return unreached(url, cause);
  if (url.startsWith('http:') && (await speaksTls(url))) {
    return new WrongAddressError(
      `The program at ${url} uses TLS: use ${url.replace('http:', 'https:')} instead.`,
    );
  }
  return error;
}

/** A server that uses TLS may respond to a plain request, but not as the API does. */
function isOfApi(error: Error): boolean {
  return error instanceof SwitchboardError && error.code !== 'internal';
}

/** Proxies often redirect from http:// to https://. */
export function redirection(url: string, { status, location }: Response): WrongAddressError | undefined {
  if (status < 300 || status > 399 || location === undefined) return undefined;
  const target = URL.parse(location, url)?.origin;
  const advice = target === undefined || target === url ? '' : `: use ${target} instead`;
  return new WrongAddressError(`The program at ${url} redirects to another address${advice}.`);
}

export function noSwitchboard(url: string, cause?: unknown): UnreachableError {
  const named = URL.parse(process.env[URL_VARIABLE] ?? '')?.origin === url;
  const source = named ? `, the address in ${URL_VARIABLE}` : '';
  const advice = isOnThisMachine(url) ? '. Start one with: switchboard up' : reason(cause);
  return new UnreachableError(`There is no Switchboard at ${url}${source}${advice}`, { cause });
}

function reason(cause: unknown): string {
  return cause instanceof Error ? `: ${cause.message || (cause as NodeJS.ErrnoException).code}` : '.';
}

function unreached(url: string, cause: unknown): UnreachableError {
  const { code = '', message = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  if (url.startsWith('https:') && untrusted.test(code)) {
    return new WrongAddressError(
      `The certificate of ${url} is not trusted: ${message} (${code}). Nothing was sent. ${trustAdvice(url, code)}`,
      { cause },
    );
  }
  if (url.startsWith('https:') && notTls.test(code)) {
    const plain = url.replace('https:', 'http:');
    return new WrongAddressError(`The program at ${url} does not use TLS: use ${plain} instead.`, { cause });
  }
  return noSwitchboard(url, cause);
}

function trustAdvice(url: string, code: string): string {
  // Only the token makes requests to this machine the local user's.
  if (new URL(url).hostname === 'localhost' && readToken(home()) !== undefined) {
    return `Trust it with NODE_EXTRA_CA_CERTS=cert.pem, or on this machine use ${url.replace('localhost', '127.0.0.1')} instead.`;
  }
  return /ALTNAME|HOSTNAME/.test(code)
    ? 'Use an address that the certificate is for.'
    : 'If it, or its authority, is yours, name the file with its certificate in the environment: NODE_EXTRA_CA_CERTS=cert.pem';
}

/** Such a server closes the connection when it gets a plain request. Sends nothing but the greeting of TLS. */
function speaksTls(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const host = withoutBrackets(hostname);
  return new Promise((resolve) => {
    // Only whether it speaks TLS matters: nothing is sent.
    const options = { ...tlsOptions(host), rejectUnauthorized: false };
    const socket = connect({ host, port: Number(port || 80), timeout: PROBE_MS, ...options });
    const settle = (answer: boolean) => () => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('secureConnect', settle(true)).on('error', settle(false)).on('timeout', settle(false));
  });
}
