-- The paths of a file, one a line, over and over.
local paths, at = {}, 0

function init(arguments)
  for path in io.lines(arguments[1]) do
    paths[#paths + 1] = path
  end
end

function request()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end
