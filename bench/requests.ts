/** Writes requests with the headers and parameters that each era requires. */
import { type Era, protocolVersion } from './eras.ts';

/** Where a variant listens, and its protocol. mcp-hub has a REST interface without sessions and ids. */
export interface Target {
  variant: string;
  port: number;
  path: string;
  protocol: Era | 'mcp-hub';
  /** The header with the credential, with its line end; empty if none is needed. */
  credential: string;
}

/** `name` is the tool's name. */
export interface Params {
  name?: string;
  arguments?: object;
}

/** Writes a request that is sent many times, with a new id each time. */
export type RequestWriter = (id: number) => string;

export const clientInfo = { name: 'bench', version: '1.0.0' };
export const clientCapabilities = {};

const selfDescription = {
  'io.modelcontextprotocol/protocolVersion': protocolVersion.modern,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': clientCapabilities,
};

/** A request with these headers. In the legacy era they name the session. */
export function rpcRequest(target: Target, headers: string, method: string, params: object): RequestWriter {
  const written = JSON.stringify(params);
  return (id) =>
    postRequest(
      target,
      target.path,
      `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${written}}`,
      headers,
    );
}

/** A request of the modern era, which describes its sender and repeats method and name in headers. */
export function modernRequest(target: Target, method: string, params: Params): RequestWriter {
  const headers =
    `MCP-Protocol-Version: ${protocolVersion.modern}\r\nMcp-Method: ${method}\r\n` +
    (params.name === undefined ? '' : `Mcp-Name: ${params.name}\r\n`);
  return rpcRequest(target, headers, method, { ...params, _meta: selfDescription });
}

export function postRequest(
  { port, credential }: Target,
  path: string,
  body: string,
  extraHeaders = '',
): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
    `Accept: application/json, text/event-stream\r\n${credential}${extraHeaders}Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** A request without a body; only the legacy era has them. */
export function bareRequest(
  { port, path, credential }: Target,
  method: 'GET' | 'DELETE',
  sessionHeaders: string,
): string {
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: text/event-stream\r\n${credential}${sessionHeaders}\r\n`;
}
