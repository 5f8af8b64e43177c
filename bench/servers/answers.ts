import { type Era, protocolVersion } from '../eras.ts';
import { payloadJson, payloadNames, toolListJson, toolOfPayload } from '../payloads.ts';

export interface Request {
  id?: number | string;
  method: string;
  params?: { name?: string; protocolVersion?: string };
}

/** Small results are sent as text in one write; large ones stay bytes, so that nothing is copied per call. */
const LARGEST_TEXT_RESULT = 32_768;
/** Longer than a run, so that lists are not fetched again during it. */
const lasting = { ttlMs: 86_400_000, cacheScope: 'public' };
const serverInfo = { name: 'bench-echo', version: '1.0.0' };
const capabilities = { tools: {} };

/** Returns the `result` of a request as prebuilt JSON, or undefined for an unsupported method. */
export function createAnswers(era: Era, toolCount: number, listJson = listOf(era, toolCount)) {
  const results = new Map<string, string | Buffer>();
  for (const name of payloadNames) results.set(toolOfPayload[name], asSmallestForm(callResult(era, name)));
  const list = asSmallestForm(listJson);
  const anyOtherTool = asSmallestForm(callResult(era, '200B'));
  const greeting = era === 'legacy' ? 'initialize' : 'server/discover';
  const greet = era === 'legacy' ? initialized : discovered;

  return (request: Request): string | Buffer | undefined => {
    switch (request.method) {
      case 'tools/call':
        return results.get(request.params?.name ?? '') ?? anyOtherTool;
      case 'tools/list':
        return list;
      case 'ping':
        return era === 'legacy' ? '{}' : undefined;
      case greeting:
        return greet(request);
      default:
        return undefined;
    }
  };
}

function initialized({ params }: Request): string {
  return JSON.stringify({
    protocolVersion: params?.protocolVersion ?? protocolVersion.legacy,
    capabilities,
    serverInfo,
  });
}

function discovered(): string {
  return JSON.stringify({
    supportedVersions: [protocolVersion.modern],
    capabilities,
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    ...lasting,
    resultType: 'complete',
  });
}

function callResult(era: Era, name: (typeof payloadNames)[number]): string {
  return era === 'legacy' ? payloadJson(name) : withMembers(payloadJson(name), { resultType: 'complete' });
}

function listOf(era: Era, toolCount: number): string {
  const list = toolListJson(toolCount);
  return era === 'legacy' ? list : withMembers(list, { ...lasting, resultType: 'complete' });
}

/** Appends members at the end, as servers built with the SDK do. */
function withMembers(json: string, members: object): string {
  return `${json.slice(0, -1)},${JSON.stringify(members).slice(1)}`;
}

/** The response to an unsupported method, which includes `initialize` in the modern era. */
export function errorJson({ id, method, params }: Request): string {
  const error =
    method === 'initialize'
      ? {
          code: -32022,
          message: 'Unsupported protocol version',
          data: { supported: [protocolVersion.modern], requested: params?.protocolVersion },
        }
      : { code: -32601, message: 'Method not found' };
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}

export function answerHead(id: number | string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
}

function asSmallestForm(json: string): string | Buffer {
  return json.length > LARGEST_TEXT_RESULT ? Buffer.from(json) : json;
}
