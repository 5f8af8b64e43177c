import { describe, expect, it } from 'vitest';
import { allowedBy } from './tool-patterns.ts';

describe('the tools that may be used', () => {
  it.each<[string[], string[]]>([
    [['get'], ['get']],
    [['get*'], ['get', 'get_recipe', 'getter']],
    [['*_recipe'], ['get_recipe', 'add_recipe']],
    [['g*t*'], ['get', 'get_recipe', 'getter']],
    [['*'], ['get', 'get_recipe', 'add_recipe', 'getter']],
    [['.*', 'g.t', '[a-z]+'], []],
    [
      ['get*get', 'g*e*t*t*t*er', '*get_recipe*r', '**'],
      ['get', 'get_recipe', 'add_recipe', 'getter'],
    ],
    [['get*get', 'g*e*t*t*t*er', '*get_recipe*r'], []],
    [
      ['*e*e*e*', 'g**t'],
      ['get', 'get_recipe'],
    ],
    [[], []],
  ])('are by %j: %j', (names, expected) => {
    const tools = ['get', 'get_recipe', 'add_recipe', 'getter'];
    const allows = allowedBy(names);
    const tool = (name: string) => ({ name, description: undefined, inputSchema: {}, server: 'a' });
    expect(tools.filter((name) => allows(tool(name)))).toEqual(expected);
  });
});
