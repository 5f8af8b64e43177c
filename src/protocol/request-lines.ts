import { headerValueOf } from './header-values.ts';
import { modernVersion } from './versions.ts';

/** The methods whose requests name something in a header too, and where in their params it stands. */
const namedBy: Record<string, 'name' | 'uri' | 'taskId'> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** Under which key of its params a request of this method names what its header `Mcp-Name` repeats. */
export function nameKeyOf(method: string): 'name' | 'uri' | 'taskId' | undefined {
  return Object.hasOwn(namedBy, method) ? namedBy[method] : undefined;
}

/** The lines of a request's head that repeat, for whoever stands in between, what the request is about. */
export function requestLines(method: string, named: string | undefined): string {
  const lines = `mcp-protocol-version: ${modernVersion}\r\n${methodLine(method)}`;
  return named === undefined || nameKeyOf(method) === undefined
    ? lines
    : `${lines}mcp-name: ${headerValueOf(named)}\r\n`;
}

function methodLine(method: string): string {
  return `mcp-method: ${headerValueOf(method)}\r\n`;
}

/** What a greeting of the legacy era has in its head, in case it reaches a server of the modern one. */
export const greetingLine = methodLine('initialize');
