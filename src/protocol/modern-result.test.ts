import { describe, expect, it } from 'vitest';
import { readModernResult, resultStart, stringAt } from './modern-result.ts';

function read(text: string) {
  const bytes = Buffer.from(text);
  const { type, requestState, taskId, inputRequests, additions } = readModernResult(
    bytes,
    resultStart(bytes),
  );
  const textOf = (span: { start: number; end: number } | undefined) =>
    span && bytes.toString('utf8', span.start, span.end);
  return {
    type,
    requestState: textOf(requestState),
    taskId: textOf(taskId),
    inputRequests: textOf(inputRequests),
    additions: additions.map(textOf),
  };
}

const nothing = { type: undefined, requestState: undefined, taskId: undefined, inputRequests: undefined };

describe('the modern members of a result', () => {
  it('are read in any position', () => {
    const text =
      '{"id":1,"result": { "ttlMs" : 5 , "taskId":"t","resultType":"input_required","requestState":"s","inputRequests":{"a":{}},"cacheScope":"public"},"jsonrpc":"2.0"}';
    expect(read(text)).toEqual({
      type: 'input_required',
      requestState: '"s"',
      taskId: '"t"',
      inputRequests: '{"a":{}}',
      additions: ['"resultType":"input_required"', '"ttlMs" : 5', '"cacheScope":"public"'],
    });
  });

  it('are read only from the result itself', () => {
    const text =
      '{"resultType":"x","result":{"structuredContent":{"resultType":"task","taskId":"t"}},"taskId":"u"}';
    expect(read(text)).toEqual({ ...nothing, additions: [] });
  });

  it.each(['null', '[]', '"resultType"', '1'])('are missing if the result is %s', (result) => {
    expect(read(`{"result":${result}}`)).toEqual({ ...nothing, additions: [] });
  });

  it('include a type only if it is a string', () => {
    expect(read('{"result":{"resultType":1}}').type).toBeUndefined();
    expect(stringAt(Buffer.from('"\\u0061"'), { start: 0, end: 8 })).toBe('a');
  });
});
