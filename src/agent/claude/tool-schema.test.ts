import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claudeSchema } from './tool-schema.ts';

type Schema = Record<string, unknown>;

const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true });

/** The checks of the API, with its error messages. */
function refusalOf(schema: Schema): string | undefined {
  if (schema.type !== 'object') return 'type: Input should be "object"';
  if ('anyOf' in schema || 'oneOf' in schema || 'allOf' in schema) return 'anyOf at the top level';
  const names = Object.keys((schema.properties ?? {}) as Schema);
  if (!names.every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name)))
    return 'Property keys should match pattern';
  return ajv.validateSchema(schema) ? undefined : ajv.errorsText();
}

/** Asserts that the rewritten schema accepts the arguments and that they are restored unchanged. */
function expectToFit(original: Schema, args: Record<string, unknown>): void {
  const { schema, renamed } = claudeSchema(original)!;
  expect(refusalOf(schema)).toBeUndefined();
  const validate = ajv.compile(schema);
  expect(validate(renamed(args)), ajv.errorsText(validate.errors)).toBe(true);
  expect(renamed(renamed(args))).toEqual(args);
}

describe('the tool schema for Claude', () => {
  it('stays unchanged if the API accepts it', () => {
    const schema = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/x' } },
      $defs: { x: { anyOf: [{}] } },
    };
    const taken = claudeSchema({ $schema: 'http://json-schema.org/draft-07/schema#', ...schema })!;
    expect(taken.schema).toEqual(schema);
    expect(taken.schema.properties).toBe(schema.properties);
  });

  it('merges top-level alternatives: each property may match any of them', () => {
    const circle = {
      properties: { kind: { const: 'circle' }, radius: { type: 'number' } },
      required: ['kind', 'radius'],
    };
    const box = {
      properties: { kind: { const: 'box' }, side: { type: 'number' } },
      required: ['kind', 'side'],
    };
    for (const keyword of ['anyOf', 'oneOf']) {
      const original = {
        description: 'A shape.',
        properties: { kind: { type: 'string' } },
        [keyword]: [circle, box],
      };
      expect(claudeSchema(original)!.schema).toEqual({
        type: 'object',
        description: 'A shape.\nRequires one of these: radius; or side.',
        properties: {
          kind: { type: 'string', anyOf: [{ const: 'circle' }, { const: 'box' }] },
          radius: { type: 'number' },
          side: { type: 'number' },
        },
        required: ['kind'],
      });
      expectToFit(original, { kind: 'circle', radius: 1 });
      expectToFit(original, { kind: 'box', side: 1 });
    }
  });

  it('merges everything that allOf parts require, including referenced ones', () => {
    const original = {
      allOf: [{ $ref: '#/$defs/named' }, { properties: { age: { type: 'integer' } }, required: ['age'] }],
      $defs: { named: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
    };
    expect(claudeSchema(original)!.schema).toMatchObject({
      properties: { name: { type: 'string' }, age: { type: 'integer' } },
      required: ['name', 'age'],
    });
    expect(claudeSchema({ $ref: '#/$defs/named', $defs: original.$defs })!.schema).toMatchObject({
      properties: { name: { type: 'string' } },
    });
  });

  it('renames properties that the API rejects, without collisions', () => {
    const names = [
      'filter[id]',
      'filter id',
      'filter_id_',
      'ä',
      '',
      'x'.repeat(80),
      `${'x'.repeat(64)}y`,
      '__proto__',
    ];
    const args = Object.fromEntries(
      [...names, 'filter_id__2', '_', 'free'].map((name, index) => [name, index]),
    );
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'integer' }]));
    const { schema } = claudeSchema({ properties, required: ['filter[id]'] })!;
    expect(Object.keys(schema.properties as Schema)).toHaveLength(names.length);
    expect(schema.required).toEqual(['filter_id__2']);
    expect(schema.properties).toMatchObject({ filter_id__2: { title: 'filter[id]', type: 'integer' } });
    expectToFit({ properties, required: ['filter[id]'] }, args);
  });

  it('resolves references to parts that moved', () => {
    const tree = {
      type: 'object',
      properties: { 'my name': { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
      required: ['my name'],
      additionalProperties: false,
    };
    expectToFit(tree, { 'my name': 'a', children: [{ 'my name': 'b', children: [] }] });
    const twins = {
      properties: { 'the one': { type: 'string' }, other: { $ref: '#/properties/the%20one' } },
    };
    expectToFit(twins, { 'the one': 'a', other: 'b' });
  });

  it('uses the draft that the API supports', () => {
    const old = {
      properties: {
        pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false },
        above: { minimum: 1, exclusiveMinimum: true, required: true },
        any: { type: 'any', not: { type: 'String' }, enum: 'a' },
        wrong: 'string',
      },
      required: 'pair',
    };
    expect(claudeSchema(old)!.schema).toEqual({
      type: 'object',
      properties: {
        pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
        ...{ above: { minimum: 1 }, any: {}, wrong: true },
      },
    });
  });

  it.each<[string, Schema]>([
    ['a text', { type: 'string' }],
    ['a list, or nothing', { type: ['array', 'null'] }],
    ['one of several, none of them an object', { anyOf: [{ type: 'string' }, { type: 'array' }] }],
    ['an object and a list at once', { allOf: [{ type: 'object' }, { type: 'array' }] }],
  ])('is undefined if the input is not an object: %s', (_what, schema) => {
    expect(claudeSchema(schema)).toBeUndefined();
  });

  it('terminates for recursive and endlessly growing references', () => {
    expectToFit({ anyOf: [{ $ref: '#' }, { properties: { a: { type: 'string' } } }] }, { a: 'x' });
    const $defs = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` };
        return [`d${index}`, { allOf: [next, next], anyOf: [next, next] }];
      }),
    );
    expectToFit({ $ref: '#/$defs/d0', $defs: { ...$defs, d60: {} } }, { a: 'x' });
  });

  it('accepts everything that the original accepts, and restores it', () => {
    fc.assert(
      fc.property(cases(), fc.dictionary(fc.string(), fc.nat()), ({ schema, args }, others) => {
        expectToFit(schema, args);
        const { renamed } = claudeSchema(schema)!;
        expect(renamed(renamed(others))).toEqual(others);
      }),
      { numRuns: 300 },
    );
  });
});

interface Case {
  schema: Schema;
  args: Record<string, unknown>;
}

const name = fc.constantFrom('a', 'b', 'c.d', 'e f', 'e[f]', 'e_f', 'é', '', '__proto__', 'g'.repeat(70));

/** Schemas, some invalid or of older drafts, each with a matching value. */
const value: fc.Arbitrary<[schema: unknown, value: unknown]> = fc.constantFrom<[unknown, unknown]>(
  [{ type: 'string' }, 'text'],
  [{ type: ['string', 'null'], pattern: '^t' }, 'text'],
  [{ type: 'integer', minimum: 0, exclusiveMinimum: true }, 3],
  [{ type: 'array', items: [{ type: 'number' }], additionalItems: { type: 'string' } }, [1, 'b']],
  [
    {
      oneOf: [
        { type: 'string', minLength: 'x' },
        { type: 'any', const: 5 },
      ],
    },
    5,
  ],
  [{ if: { type: 'any' }, else: { type: 'string' } }, 'text'],
  [{ not: { type: 'nonsense' } }, 1],
  [{ type: 'object', properties: { 'x y': { type: 'string' } }, required: ['x y'] }, { 'x y': 'z' }],
  [true, null],
  ['nonsense', 1],
);

const object: fc.Arbitrary<Case> = fc
  .uniqueArray(fc.tuple(name, value, fc.boolean(), fc.boolean()), { selector: ([key]) => key, maxLength: 4 })
  .map((entries) => ({
    schema: {
      type: 'object',
      properties: Object.fromEntries(entries.map(([key, [schema]]) => [key, schema])),
      required: entries.flatMap(([key, , isRequired]) => (isRequired ? [key] : [])),
    },
    args: Object.fromEntries(
      entries.flatMap(([key, [, given], isRequired, isThere]) =>
        isRequired || isThere ? [[key, given]] : [],
      ),
    ),
  }));

/** Alternatives of which the arguments match one, next to constraints that always apply. */
function cases(): fc.Arbitrary<Case> {
  const alternatives = fc
    .tuple(
      fc.array(object, { minLength: 1, maxLength: 4 }),
      fc.nat(),
      fc.constantFrom('anyOf', 'oneOf'),
      fc.boolean(),
    )
    .map(([branches, chosen, keyword, isReferred]): Case => {
      const { args } = branches[chosen % branches.length]!;
      const schemas = branches.map(({ schema }) => schema);
      if (!isReferred) return { schema: { [keyword]: schemas }, args };
      const $defs = Object.fromEntries(schemas.map((schema, index) => [`d${index}`, schema]));
      return {
        schema: { [keyword]: schemas.map((_, index) => ({ $ref: `#/$defs/d${index}` })), $defs },
        args,
      };
    });
  const together = fc.tuple(object, alternatives).map(([base, { schema, args }]): Case => {
    // The arguments of one schema need not match the other, so the second omits shared properties.
    const own = new Set(Object.keys(base.schema.properties as Schema));
    if (Object.keys(args).some((key) => own.has(key)) || requires(schema, own)) return { schema, args };
    return { schema: { ...schema, allOf: [base.schema] }, args: { ...base.args, ...args } };
  });
  return fc.oneof(object, alternatives, together);
}

function requires(schema: Schema, names: ReadonlySet<string>): boolean {
  return [...names].some((each) => JSON.stringify(schema).includes(JSON.stringify(each)));
}
