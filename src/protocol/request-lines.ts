import { headerValueOf } from './header-values.ts';
import { modernVersion } from './versions.ts';

/** Methods whose requests repeat a param in the header `Mcp-Name`, and the key of that param. */
const namedBy: Record<string, 'name' | 'uri' | 'taskId'> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

export function nameKeyOf(method: string): 'name' | 'uri' | 'taskId' | undefined {
  return Object.hasOwn(namedBy, method) ? namedBy[method] : undefined;
}

/** The header lines that repeat parts of the request for proxies. */
export function requestLines(method: string, named: string | undefined): string {
  const lines = `mcp-protocol-version: ${modernVersion}\r\n${methodLine(method)}`;
  return named === undefined || nameKeyOf(method) === undefined
    ? lines
    : `${lines}mcp-name: ${headerValueOf(named)}\r\n`;
}

function methodLine(method: string): string {
  return `mcp-method: ${headerValueOf(method)}\r\n`;
}

/** Sent with a legacy greeting, in case it reaches a modern server. */
export const greetingLine = methodLine('initialize');
