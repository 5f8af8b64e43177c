import { describe, expect, it } from 'vitest';
import { startForTests } from '../../../test/helpers/api-client.ts';

const MEGABYTE = 1024 * 1024;
const { services, serve, newName } = await startForTests();

describe('a request body', () => {
  it.each([
    [undefined, 415],
    ['text/plain', 415],
    ['application/jsonx', 415],
    ['application/json; charset=latin1', 415],
    ['application/json', 201],
    ['Application/JSON; charset="UTF-8"', 201],
  ])('of type %s gets the status %d', async (type, status) => {
    const { ask } = await serve();
    const headers = { 'content-type': type ?? '' };
    expect((await ask('POST /projects', { name: newName() }, headers)).status).toBe(status);
  });

  it.each([
    ['', 'it is empty'],
    ['{', 'line 1, column 2'],
    ['{"name": "s3cret}', 'line 1, column 10'],
    ['{"name": s3cret}', 'put keys and strings in double quotes'],
    ['{"name": "web",}', 'comments or trailing commas'],
    ['[]', 'must be a JSON object'],
    ['null', 'must be a JSON object'],
    ['"s3cret"', 'must be a JSON object'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'not valid UTF-8'],
    ['{"name": "a\\u0000b"}', 'name must not contain a NUL character'],
    ['{"description": "\\ud800"}', 'description must not contain half of a surrogate pair'],
    ['{"a": {"\\u0000": 1}}', 'a must not contain a NUL character'],
    [`{"a": ${'['.repeat(100)}${']'.repeat(100)}}`, 'nested deeper than 64 levels'],
  ])('%j is rejected: %s', async (body, message) => {
    const { ask } = await serve();
    const { status, error } = await ask('POST /projects', body);
    expect({ status, code: error.code }).toEqual({ status: 400, code: 'invalid_input' });
    expect(error.message).toContain(message);
    expect(error.message).not.toContain('s3cret}');
  });

  it('may be nested to any depth without harm', async () => {
    const { ask } = await serve();
    const { status } = await ask('POST /projects', `{"a": ${'['.repeat(MEGABYTE)}${']'.repeat(MEGABYTE)}}`);
    expect(status).toBe(400);
  });

  it.each([
    ['unknown keys', `{${Array.from({ length: 200_000 }, (_, index) => `"key${index}": 1`).join()}}`],
    ['wrong items', `{"name": "a", "transport": "stdio", "config": {"args": [1${',1'.repeat(MEGABYTE)}]}}`],
    ['wrong texts', `{"a": ["\\u0000"${',"\\u0000"'.repeat(300_000)}]}`],
    ['a long key', `{"${'x'.repeat(3 * MEGABYTE)}": 1}`],
  ])('gets a short error for any problem: %s', async (_what, body) => {
    const { ask } = await serve();
    const { status, error } = await ask('POST /projects/default/servers', body);
    expect(status).toBe(400);
    expect(JSON.stringify(error).length).toBeLessThan(50_000);
  });

  it('with too many values is rejected before validation', async () => {
    const { ask } = await serve();
    const withNames = (count: number) => {
      const env = Array.from({ length: count }, (_, index) => [`VARIABLE_${index}`, index]);
      return { name: 'a', transport: 'stdio', config: { command: 'b', env: Object.fromEntries(env) } };
    };
    const { status, error } = await ask('POST /projects/default/servers', withNames(20_000));
    expect({ status, message: error.message }).toEqual({
      status: 400,
      message: 'The body has more than 20000 values in it.',
    });
    expect((await ask('POST /projects/default/servers', withNames(9_000))).error.message).toContain(
      'config.env.VARIABLE_0 must be a string',
    );
  });

  it('cannot pollute prototypes', async () => {
    const { ask } = await serve();
    const manifest =
      '{"name": "kit", "version": "1", "mcp": {"servers": []}, "__proto__": {"polluted": true}, "constructor": 1}';
    expect((await ask('POST /projects/default/products', manifest)).status).toBe(201);
    expect(({} as { polluted?: boolean }).polluted).toBe(undefined);
    const [product] = await services.database!.store.products.list(services.projects.get('default').id);
    expect(Object.getPrototypeOf(product!.manifest)).toBe(Object.prototype);
    expect(product!.manifest).toEqual({ name: 'kit', version: '1', mcp: { servers: [] }, constructor: 1 });
    const { error } = await ask('POST /projects', '{"name": "web", "__proto__": {}}');
    expect(error.details.problems).toMatchObject([{ path: '__proto__' }]);
  });

  it('may have at most 4 MB', async () => {
    const { ask } = await serve();
    const sized = (bytes: number) => `{"name": "web"${' '.repeat(bytes - 15)}}`;
    const { status, headers, error } = await ask('POST /projects', sized(4 * MEGABYTE + 1));
    expect({ status, code: error.code }).toEqual({ status: 413, code: 'too_large' });
    expect(headers.connection).toBe('close');
    expect((await ask('POST /projects', sized(4 * MEGABYTE))).status).toBe(201);
  });
});
