import { expect, it } from 'vitest';
import { readList } from './list-reader.ts';

const limits = { items: 3, bytes: 100, itemBytes: 20, itemDepth: 4 };
const read = (text: string) => readList(Buffer.from(text), 'tools', limits);

it('reads the items and the rest of a result, in any spelling', async () => {
  const text =
    ' { "id" : 1 , "result" : { "nextCursor" : "a" , "t\\u006fols" : [ {"a":"]}\\""} , 9007199254740993 ] } } ';
  const { items, result } = await read(text);
  expect(JSON.stringify(items)).toBe('[{"a":"]}\\""},9007199254740993]');
  expect(result).toEqual({ nextCursor: 'a' });
});

it('counts items above the limits without building them', async () => {
  const large = JSON.stringify('x'.repeat(30));
  const page = await read(`{"result":{"tools":[1,${large},2,3,4,5],"nextCursor":"n"}}`);
  expect(page).toMatchObject({ items: [1, 2, 3], tooLarge: 1, beyond: 2, result: { nextCursor: 'n' } });
});

it('skips items that are nested too deeply, and none after them', async () => {
  const page = await read('{"result":{"tools":[[[[[1]]]],[[{"a":[["["]]}]],"[[[[[[",2]}}');
  expect(page).toMatchObject({ items: [[[[[1]]]], '[[[[[[', 2], tooLarge: 1, beyond: 0 });
});

it('uses the last of two lists, and reports an error', async () => {
  expect((await read('{"result":{"tools":[1],"tools":[2]}}')).items).toEqual([2]);
  expect((await read('{"error":{"code":-1,"message":"no"}}')).error).toEqual({ code: -1, message: 'no' });
});

it('skips an item with too many values', async () => {
  const many = `[${'1e1,'.repeat(110_000)}1]`;
  const bytes = Buffer.from(`{"result":{"tools":[1,${many},2]}}`);
  const page = await readList(bytes, 'tools', { ...limits, bytes: 1e6, itemBytes: 1e6 });
  expect(page).toMatchObject({ items: [1, 2], tooLarge: 1 });
});

it.each(['', '{', '{"result":{"tools":[1', '{"result":{"tools":[{]}}', '{"result":{"tools":[1 2]}}', '[]'])(
  'rejects invalid JSON: %s',
  async (text) => {
    await expect(read(text)).rejects.toThrow(SyntaxError);
  },
);

it('yields to other work during a long list', async () => {
  const text = `{"result":{"tools":[${'[1],'.repeat(400_000)}1]}}`;
  let isOver = false;
  let turns = 0;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  expect((await read(text)).beyond).toBe(399_998);
  isOver = true;
  expect(turns).toBeGreaterThan(0);
});
