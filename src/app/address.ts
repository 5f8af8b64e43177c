import { connect } from 'node:net';
import { SwitchboardError } from '../errors.ts';

const CONNECT_MS = 1_000;

const loopbackHosts = new Set(['127.0.0.1', '::1', 'localhost']);

export function isLoopback(host: string): boolean {
  return loopbackHosts.has(host);
}

export function baseUrl(host: string, port: number, isSecure: boolean): string {
  return `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Checks before anything is opened that the port is free. Connects instead of listening, so that it never holds the port while
 * another program starts.
 */
export async function checkPort(host: string, port: number): Promise<void> {
  if (port === 0 || !(await isTaken(host, port))) return;
  throw new SwitchboardError(
    'invalid_config',
    `port ${port} on ${host} is in use; is Switchboard running already? Choose another with --port`,
  );
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    const settle = (taken: boolean) => () => {
      socket.destroy();
      resolve(taken);
    };
    socket.on('connect', settle(true)).on('error', settle(false)).on('timeout', settle(false));
  });
}
