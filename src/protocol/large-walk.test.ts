import fc from 'fast-check';
import { expect, it } from 'vitest';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { turnsDuring } from '../../test/helpers/turns.ts';
import { LARGE_BYTES, walkLarge } from './large-walk.ts';
import { membersAt } from './members.ts';
import { modernMembers } from './modern-result.ts';
import { resultUriSpans, uriShapes } from './result-uris.ts';

const uris = fc.constantFrom('"a:1"', '"ui://x"', '"\\u0061"', '1', '[]', '{"uri":"no"}');
const item = (text: string, uri: string) =>
  `{"type":"x","uri": ${uri},"\\u0075ri":"b:1","resource" :{"uri":${uri},"x":${text}},"x":${text}}`;

it('finds the same URIs as a synchronous scan', async () => {
  await fc.assert(
    fc.asyncProperty(jsonTexts.value, uris, async (text, uri) => {
      const one = item(text, uri);
      const content = `[${one},${text},${one}]`;
      const messages = `[{"content":${one}},{"content":${content},"each":${one}}]`;
      const inner = `{"content":${content},"contents":${content},"messages":${messages},"uri":"no","each":${one}`;
      const bytes = Buffer.from(`{"id":1,"result":${inner},"result":${inner}}}}`);
      for (const [method, shape] of uriShapes) {
        const found = resultUriSpans(method, bytes).flatMap(({ start, end }) => [start, end]);
        expect((await walkLarge(bytes, shape)).strings).toEqual(found);
      }
    }),
    { numRuns: 200 },
  );
});

it('finds the same members as a synchronous scan', async () => {
  const shape = { result: Object.fromEntries(modernMembers.map((name) => [name, 'member' as const])) };
  await fc.assert(
    fc.asyncProperty(jsonTexts.value, jsonTexts.value, async (one, other) => {
      const start = '{"id":1,"result":';
      const bytes = Buffer.from(
        `${start}{"resultType": ${one} ,"x":{"ttlMs":1},"task\\u0049d":${other},"resultType":${other}},"ttlMs":1}`,
      );
      const { members } = await walkLarge(bytes, shape);
      expect(members).toEqual(membersAt(bytes, start.length, new Set(modernMembers)));
    }),
    { numRuns: 200 },
  );
});

it.each([
  ['links', '{"uri":"a:1"},'],
  ['members', '"a":1,'],
])('yields to other work over many %s', async (_, unit) => {
  const many = unit.repeat(LARGE_BYTES / unit.length);
  const bytes = Buffer.from(
    unit.startsWith('{')
      ? `{"result":{"content":[${many}1]}}`
      : `{"result":{"content":[{"uri":"a:1",${many}"z":1}],${many}"ttlMs":1}}`,
  );
  const walking = walkLarge(bytes, uriShapes.get('tools/call'));
  expect(await turnsDuring(walking)).toBeGreaterThanOrEqual(8);
  const found = resultUriSpans('tools/call', bytes).flatMap(({ start, end }) => [start, end]);
  const { strings } = await walking;
  expect(strings).toHaveLength(found.length);
  expect(strings.every((place, index) => place === found[index])).toBe(true);
});
