import { payloadJson, payloadNames, toolListJson, toolOfPayload } from '../payloads.ts';

export interface Request {
  id?: number | string;
  method: string;
  params?: { name?: string; protocolVersion?: string };
}

/** Small results travel as text in one write; large ones stay bytes, so that nothing is copied per call. */
const LARGEST_TEXT_RESULT = 32_768;

/** Gives the `result` of a request as prebuilt JSON, or undefined for a method that is not offered. */
export function createAnswers(toolCount: number, listJson = toolListJson(toolCount)) {
  const results = new Map<string, string | Buffer>();
  for (const name of payloadNames) results.set(toolOfPayload[name], asSmallestForm(payloadJson(name)));
  const list = asSmallestForm(listJson);
  const anyOtherTool = asSmallestForm(payloadJson('200B'));

  return (request: Request): string | Buffer | undefined => {
    switch (request.method) {
      case 'tools/call':
        return results.get(request.params?.name ?? '') ?? anyOtherTool;
      case 'tools/list':
        return list;
      case 'ping':
        return '{}';
      case 'initialize':
        return JSON.stringify({
          protocolVersion: request.params?.protocolVersion ?? '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'bench-echo', version: '1.0.0' },
        });
      default:
        return undefined;
    }
  };
}

export function errorJson(id: number | string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"Method not found"}}`;
}

export function answerHead(id: number | string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
}

function asSmallestForm(json: string): string | Buffer {
  return json.length > LARGEST_TEXT_RESULT ? Buffer.from(json) : json;
}
