import { describe, expect, it } from 'vitest';
import { allowedBy, type ToolChoice, toolFilter } from './tool-patterns.ts';

describe('the allowed tools', () => {
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
  ])('match %j: %j', (names, expected) => {
    const tools = ['get', 'get_recipe', 'add_recipe', 'getter'];
    const allows = allowedBy(names);
    expect(tools.filter((name) => allows({ name }))).toEqual(expected);
  });
});

describe('the tools that a server offers', () => {
  it.each<[ToolChoice, string[]]>([
    [{ allow: ['get*'] }, ['get', 'get_recipe']],
    [{ deny: ['*_recipe'] }, ['get']],
    [{ allow: ['*_recipe'], deny: ['add_*'] }, ['get_recipe']],
    [{ allow: [] }, []],
    [{ deny: [] }, ['get', 'get_recipe', 'add_recipe']],
  ])('match %j: %j', (choice, expected) => {
    expect(['get', 'get_recipe', 'add_recipe'].filter(toolFilter(choice)!)).toEqual(expected);
  });

  it('are all tools by default', () => {
    expect(toolFilter(undefined)).toBeUndefined();
    expect(toolFilter({})).toBeUndefined();
  });
});
