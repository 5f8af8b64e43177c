import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { type Member, membersAt, withMembers, withoutMembers } from './members.ts';
import { splice } from './splice.ts';

const space = fc.constantFrom('', ' ', '\n', '\t\r\n', '  ');
const keys = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');

/** Objects with distinct members and any white space. */
const objects = fc
  .tuple(
    fc.uniqueArray(keys, { maxLength: 6 }),
    fc.array(fc.tuple(space, space, jsonTexts.value, space, space), { minLength: 6, maxLength: 6 }),
    space,
  )
  .map(([names, parts, blank]) => {
    const members = names.map((name, index) => {
      const [before, inner, value, after, end] = parts[index]!;
      return { name, value, text: `${before}"${name}"${inner}:${after}${value}${end}` };
    });
    return { members, text: `{${members.length === 0 ? blank : members.map(({ text }) => text).join(',')}}` };
  });
const surroundings = fc.tuple(fc.constantFrom('', '{"x":', '[1,'), fc.constantFrom('', '}', ',2]', ' '));

function without(text: string, at: number, names: ReadonlySet<string>): string {
  const bytes = Buffer.from(text);
  return splice(bytes, withoutMembers(bytes, membersAt(bytes, at, names).values())).toString();
}

describe('members of an object', () => {
  it('are found at their positions, with their values', () => {
    fc.assert(
      fc.property(
        objects,
        surroundings,
        fc.uniqueArray(keys),
        ({ members, text }, [before, after], names) => {
          const bytes = Buffer.from(before + text + after);
          const found = membersAt(bytes, Buffer.byteLength(before), new Set(names));
          const wanted = members.filter(({ name }) => names.includes(name));
          expect([...found.keys()]).toEqual(wanted.map(({ name }) => name));
          for (const { name, value } of wanted) {
            const member = found.get(name)!;
            expect(bytes.toString('utf8', member.value.start, member.value.end)).toBe(value);
            expect(bytes.toString('utf8', member.start, member.end)).toMatch(new RegExp(`^"${name}"\\s*:`));
            expect(member.end).toBe(member.value.end);
          }
        },
      ),
    );
  });

  it.each([
    ['escaped keys', '{"\\u0061":1}', 'a', '1'],
    ['the last of two', '{"a":1,"a":2}', 'a', '2'],
    ['keys that are not ASCII', '{"ä":1,"a":2}', 'a', '2'],
  ])('are found under %s', (_what, text, name, value) => {
    const bytes = Buffer.from(text);
    const { start, end } = membersAt(bytes, 0, new Set([name])).get(name)!.value;
    expect(bytes.toString('utf8', start, end)).toBe(value);
  });

  it.each(['[]', '1', '"{}"', 'null'])('are not found in %s', (text) => {
    expect(membersAt(Buffer.from(text), 0, new Set(['a'])).size).toBe(0);
  });
});

describe('an object without some of its members', () => {
  it('is valid, and keeps all others byte for byte and in order', () => {
    fc.assert(
      fc.property(
        objects,
        surroundings,
        fc.uniqueArray(keys),
        ({ members, text }, [before, after], names) => {
          const whole = before + text + after;
          const rest = without(whole, Buffer.byteLength(before), new Set(names));
          expect(rest.startsWith(before)).toBe(true);
          expect(rest.endsWith(after)).toBe(true);
          const left = rest.slice(before.length, rest.length - after.length);
          const kept = members.filter(({ name }) => !names.includes(name));
          expect(JSON.parse(left)).toEqual(JSON.parse(`{${kept.map((member) => member.text).join(',')}}`));
          // Remaining members keep every byte; only white space around removed ones may differ.
          let from = 0;
          for (const { text: member } of kept) {
            from = left.indexOf(member.trim(), from);
            expect(from).toBeGreaterThan(0);
            from += member.trim().length;
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('does not depend on the order in which they are named', () => {
    const bytes = Buffer.from('{"a":1,"b":2,"c":3,"d":4}');
    const found = [...membersAt(bytes, 0, new Set(['a', 'b', 'd'])).values()];
    fc.assert(
      fc.property(fc.shuffledSubarray<Member>(found, { minLength: 3 }), (members) => {
        expect(splice(bytes, withoutMembers(bytes, members)).toString()).toBe('{"c":3}');
      }),
    );
  });
});

describe('an object with added members', () => {
  it('is valid, and keeps all that it had', () => {
    fc.assert(
      fc.property(objects, surroundings, ({ text }, [before, after]) => {
        const bytes = Buffer.from(before + text + after);
        const added = Buffer.from('"new":[1.0],"other":{}');
        const more = splice(bytes, [withMembers(bytes, Buffer.byteLength(before), added)]).toString();
        const inner = more.slice(before.length, more.length - after.length);
        expect(JSON.parse(inner)).toEqual({ ...(JSON.parse(text) as object), new: [1], other: {} });
        expect(inner.endsWith(text.slice(1))).toBe(true);
      }),
    );
  });

  it('is restored when they are removed again', () => {
    fc.assert(
      fc.property(objects, ({ text }) => {
        const bytes = Buffer.from(text);
        const more = splice(bytes, [withMembers(bytes, 0, Buffer.from('"new":1'))]);
        expect(JSON.parse(without(more.toString(), 0, new Set(['new'])))).toEqual(JSON.parse(text));
      }),
    );
  });
});
