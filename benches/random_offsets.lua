-- Pages of 99 users at random offsets of a list; the argument is its length.
local last = 0

function init(arguments)
  last = tonumber(arguments[1]) - 99
  math.randomseed(1)
end

function request()
  return wrk.format("GET", "/external/users?limit=99&offset=" .. math.random(0, last))
end
